package auth

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Renewal holds the data with which the provider is asked again about a person.
type Renewal struct {
	Subject string        `json:"subject"`
	Refresh string        `json:"refresh"` // the person's refresh token, a secret
	Within  time.Duration `json:"-"`       // time until the next check
}

// String hides the secret if a renewal is printed.
func (r *Renewal) String() string { return "a renewal" }

// GoString does the same as String.
func (r *Renewal) GoString() string { return r.String() }

// Sealer encrypts data that nodes must read and the database must not show. A text that was sealed
// with some `about` opens only with the same `about`. So the data of one login do not open for
// another.
type Sealer interface {
	Seal(about string, text []byte) (key string, sealed []byte, err error)
	Open(about, key string, sealed []byte) (text []byte, err error)
}

func aboutLogin(l *LoginRow) string { return "login " + hex.EncodeToString(l.Hash[:]) }

func (r *Renewal) seal(keys Sealer, l *LoginRow) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	l.Key, l.Sealed, err = keys.Seal(aboutLogin(l), text)
	return err
}

func openRenewal(keys Sealer, l *LoginRow) (*Renewal, error) {
	text, err := keys.Open(aboutLogin(l), l.Key, l.Sealed)
	if err != nil {
		return nil, err
	}
	r := new(Renewal)
	if err := json.Unmarshal(text, r); err != nil || r.Refresh == "" {
		return nil, fmt.Errorf("login %d: its sealed renewal is invalid", l.ID)
	}
	return r, nil
}
