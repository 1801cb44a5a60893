package auth

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Renewal is how to ask a provider again about somebody for whom it vouched.
type Renewal struct {
	Subject string        `json:"subject"`
	Refresh string        `json:"refresh"` // a refresh token: a secret of that person
	Within  time.Duration `json:"-"`       // when to ask next, counted from now
}

// String shows nothing of it, wherever it may get printed.
func (r *Renewal) String() string { return "a renewal" }

// GoString is String.
func (r *Renewal) GoString() string { return r.String() }

// Sealer keeps what nodes must read and the database must not show. What a text is about is sealed with it: sealed for
// one login it opens for no other.
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
		return nil, fmt.Errorf("login %d: what was sealed with it is no renewal", l.ID)
	}
	return r, nil
}
