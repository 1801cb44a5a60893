package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// keyBytes is the length of a key.
const keyBytes = 32

// maxKeyFile bounds a file of keys, in bytes.
const maxKeyFile = 16 << 10

// Ring holds a node's keys. The first key seals. A ring never shows the keys themselves.
type Ring struct{ keys []key }

type key struct {
	id   string // identifies the key and reveals nothing about it
	aead cipher.AEAD
}

// NewKey makes a key in the form that key files and settings have.
func NewKey() string {
	var b [keyBytes]byte
	rand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}

// Parse parses keys of 32 bytes each, in base64, separated by white space or commas. A # begins a
// comment to the end of the line. Errors do not repeat the keys.
func Parse(text string) (*Ring, error) {
	r := &Ring{}
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for _, word := range strings.FieldsFunc(line, func(c rune) bool {
			return c == ',' || c == ' ' || c == '\t' || c == '\r'
		}) {
			b, err := base64.StdEncoding.DecodeString(word)
			if err != nil || len(b) != keyBytes {
				return nil, fmt.Errorf(
					"line %d is not a key; want %d bytes in base64, as go-crontab secret keygen prints them",
					n+1, keyBytes)
			}
			if err := r.add(b); err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
		}
	}

	if len(r.keys) == 0 {
		return nil, errors.New("has no key; create one with go-crontab secret keygen")
	}
	return r, nil
}

func (r *Ring) add(b []byte) error {
	block, err := aes.NewCipher(b)
	if err != nil {
		return err
	}

	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return err
	}

	sum := sha256.Sum256(append([]byte("go-crontab key id\x00"), b...))
	id := hex.EncodeToString(sum[:8])
	if r.Has(id) {
		return errors.New("the key is given twice")
	}

	r.keys = append(r.keys, key{id, aead})
	return nil
}

// Load reads keys from a file. open reports whether users other than its owner may read it.
func Load(file string) (r *Ring, open bool, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, false, err
	}
	if info.Size() > maxKeyFile {
		return nil, false, fmt.Errorf("%s has %d bytes, too many for a file of keys", file, info.Size())
	}

	b, err := os.ReadFile(file)
	if err != nil {
		return nil, false, err
	}
	if r, err = Parse(string(b)); err != nil {
		return nil, false, fmt.Errorf("%s: %w", file, err)
	}

	return r, info.Mode().Perm()&0o077 != 0, nil
}

// IDs returns the ids of the keys, the sealing one first. A nil ring has none.
func (r *Ring) IDs() []string {
	if r == nil {
		return nil
	}
	ids := make([]string, len(r.keys))
	for i, k := range r.keys {
		ids[i] = k.id
	}
	return ids
}

// Has reports whether the ring has the key with an id.
func (r *Ring) Has(id string) bool { return r.key(id) != nil }

func (r *Ring) key(id string) *key {
	if r == nil {
		return nil
	}
	for i := range r.keys {
		if r.keys[i].id == id {
			return &r.keys[i]
		}
	}
	return nil
}

// String lists the ids of the keys.
func (r *Ring) String() string { return "keys " + strings.Join(r.IDs(), ", ") }

// Seal seals a text with the first key. It is for texts that are not secrets of jobs. Open needs
// the same about.
func (r *Ring) Seal(about string, text []byte) (id string, sealed []byte, err error) {
	if r == nil {
		return "", nil, ErrNoKey
	}
	k := &r.keys[0]
	return k.id, k.aead.Seal(nil, nil, text, other(about)), nil
}

// Open opens a text that Seal sealed with the same about. id names the key.
func (r *Ring) Open(about, id string, sealed []byte) ([]byte, error) {
	if r == nil {
		return nil, ErrNoKey
	}

	k := r.key(id)
	if k == nil {
		return nil, fmt.Errorf("it is sealed with the key %s, and this node has %s", id, r)
	}

	text, err := k.aead.Open(nil, nil, sealed, other(about))
	if err != nil {
		return nil, errors.New("its row in the database is damaged, or was changed without the key")
	}
	return text, nil
}

// other returns the authenticated data of a text that is not a job's secret. These data never
// equal a result of the function about.
func other(about string) []byte { return []byte("go-crontab other\x00" + about) }

// about returns the authenticated data of a secret. Names and apps cannot contain a NUL byte.
func about(s *Row) []byte {
	return []byte("go-crontab secret\x00" + string(s.Name) + "\x00" + s.App + "\x00" + strconv.FormatInt(s.Version, 10))
}

// seal seals a value with the first key.
func (r *Ring) seal(s *Row, value string) error {
	if r == nil {
		return ErrNoKey
	}
	k := &r.keys[0]
	s.Key, s.Sealed = k.id, k.aead.Seal(nil, nil, []byte(value), about(s))
	return nil
}

// open returns the value of a secret.
func (r *Ring) open(s *Row) (string, error) {
	if r == nil {
		return "", ErrNoKey
	}

	k := r.key(s.Key)
	if k == nil {
		return "", fmt.Errorf("it is sealed with the key %s, and this node has %s", s.Key, r)
	}

	value, err := k.aead.Open(nil, nil, s.Sealed, about(s))
	if err != nil {
		return "", errors.New("its row in the database is damaged, or was changed without the key")
	}
	return string(value), nil
}
