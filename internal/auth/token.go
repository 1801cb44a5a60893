package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"math/big"
	"strings"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// A token has three parts: a prefix, by which people and secret scanners recognize it, 256 random
// bits, and a checksum. By the checksum, a mistyped or made-up token is refused without a query:
//
//	gocrontab_ + 43 digits + 6 digits        [0-9A-Za-z], so that a double click selects everything
//
// The database has only the SHA-256 of a token. A slow hash is for secrets that can be guessed,
// and nobody can guess 256 random bits. A slow hash would cost every request some 10 ms of CPU,
// even a stranger's request. The row is found by an index on the hash. The time of that look-up
// reveals something about hashes, but nothing about tokens.
const (
	tokenPrefix = "gocrontab_"
	loginPrefix = "gclogin_" // of the cookie of a signed-in browser
	keyPrefix   = "gckey_"   // of the key that the page keeps besides the cookie

	secretBytes  = 32
	secretDigits = 43 // digits of base 62 that hold 256 bits
	sumDigits    = 6  // digits that hold the 32 bits of the checksum
)

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Hash is the stored hash of a secret.
type Hash = [sha256.Size]byte

func hashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// newSecret makes a secret with a prefix.
func newSecret(prefix string) string {
	var b [secretBytes]byte
	rand.Read(b[:]) // never fails
	s := prefix + base62(new(big.Int).SetBytes(b[:]), secretDigits)
	return s + checksum(s)
}

func base62(n *big.Int, width int) string {
	out := make([]byte, width)
	base, digit := big.NewInt(int64(len(digits))), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.QuoRem(n, base, digit)
		out[i] = digits[digit.Int64()]
	}
	return string(out)
}

func checksum(s string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(s)))), sumDigits)
}

// isSecret reports whether a text has the form and the checksum of a secret.
func isSecret(prefix, s string) bool {
	if len(s) != len(prefix)+secretDigits+sumDigits || !strings.HasPrefix(s, prefix) {
		return false
	}
	body := len(s) - sumDigits
	return strings.Trim(s[len(prefix):], digits) == "" && checksum(s[:body]) == s[body:]
}

// Login is the pair of secrets that proves a sign-in. A browser sends a cookie to every port of
// the host, so the cookie alone is worth nothing. Only scripts of the page's own origin, which
// includes the port, can read the key. The cluster keeps one hash of both secrets.
type Login struct {
	Cookie string
	Key    string
}

func newLogin() Login { return Login{Cookie: newSecret(loginPrefix), Key: newSecret(keyPrefix)} }

// Complete reports whether both secrets have the right form. The login need not exist.
func (l Login) Complete() bool { return isSecret(loginPrefix, l.Cookie) && isSecret(keyPrefix, l.Key) }

// Tag returns a name for the cookie that belongs to a key. The name reveals nothing about the key.
// Sign-ins at different ports of a host have different tags, so they do not overwrite each other's
// cookies.
func Tag(key string) string {
	sum := sha256.Sum256([]byte("go-crontab cookie of " + key))
	return hex.EncodeToString(sum[:4])
}

// String returns both halves in one text.
func (l Login) String() string { return l.Cookie + "." + l.Key }

// LooksLikeToken reports whether a text has the form of a token. The token need not exist.
func LooksLikeToken(s string) bool { return isSecret(tokenPrefix, s) }

const maxName = 64

// CheckName checks the name of a token. In the audit, this is the name of the token's holder, so
// it must differ from the names of other actors. Names of people have an @, which is not allowed
// here.
func CheckName(name string) error {
	const letters = digits + "_.-/"
	switch {
	case name == "":
		return problem.Errorf(problem.Empty.Advise("give a name that says who holds the token"))
	case len(name) > maxName:
		return problem.Errorf(problem.TokenNameLong, len(name), maxName)
	case strings.Trim(name, letters) != "":
		return problem.Errorf(problem.TokenName, name)
	case name == job.Anonymous || name == job.Itself:
		return problem.Errorf(problem.TokenNameTaken, name)
	}

	return nil
}
