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

// A token is a prefix by which people and scanners for secrets know it, 256 random bits, and a checksum by which
// a mistyped or made-up one is told without asking the database:
//
//	gocrontab_ + 43 digits + 6 digits        [0-9A-Za-z], so that a double click takes all of it
//
// What is kept is its SHA-256. A slow hash would protect a secret that can be guessed; nobody guesses 256 random bits,
// and it would cost each request, also that of a stranger, some ten milliseconds of processor. The row is found by the
// hash, in an index: how long that takes tells something about hashes, which say nothing about the token.
const (
	tokenPrefix = "gocrontab_"
	loginPrefix = "gclogin_" // of what the cookie of a signed-in browser holds
	keyPrefix   = "gckey_"   // of what its page keeps beside the cookie

	secretBytes  = 32
	secretDigits = 43 // of base 62 hold 256 bits
	sumDigits    = 6  // and these 32
)

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Hash is what is kept of a secret.
type Hash = [sha256.Size]byte

func hashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// newSecret makes a token or what a cookie holds.
func newSecret(prefix string) string {
	var b [secretBytes]byte
	rand.Read(b[:]) // it does not fail
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

// isSecret tells whether a text can be a secret that newSecret made.
func isSecret(prefix, s string) bool {
	if len(s) != len(prefix)+secretDigits+sumDigits || !strings.HasPrefix(s, prefix) {
		return false
	}
	body := len(s) - sumDigits
	return strings.Trim(s[len(prefix):], digits) == "" && checksum(s[:body]) == s[body:]
}

// Login is what a browser proves a sign-in with. A browser sends a cookie to every port of the host, so the cookie alone
// is worth nothing: only scripts of the page's own origin, which includes the port, can read the key. The cluster keeps
// one hash of both.
type Login struct {
	Cookie string
	Key    string
}

func newLogin() Login { return Login{Cookie: newSecret(loginPrefix), Key: newSecret(keyPrefix)} }

// Complete reports whether both halves look like halves of a login. It need not be a valid one.
func (l Login) Complete() bool { return isSecret(loginPrefix, l.Cookie) && isSecret(keyPrefix, l.Key) }

// Tag names the cookie that belongs to a key. It says nothing about the key, and sign-ins of several ports of one host
// have different ones, so that they do not overwrite each other's cookies.
func Tag(key string) string {
	sum := sha256.Sum256([]byte("go-crontab cookie of " + key))
	return hex.EncodeToString(sum[:4])
}

// String is both halves in one text.
func (l Login) String() string { return l.Cookie + "." + l.Key }

// LooksLikeToken tells whether a text can be a token. It need not be a valid one.
func LooksLikeToken(s string) bool { return isSecret(tokenPrefix, s) }

const maxName = 64

// CheckName looks at the name of a token. It stands in the audit as who did something, so it must not be that of
// somebody else: people whom a provider vouches for have an @ in theirs.
func CheckName(name string) error {
	const letters = digits + "_.-/"
	switch {
	case name == "":
		return problem.Errorf(problem.Empty.Advise("a name says who holds the token"))
	case len(name) > maxName:
		return problem.Errorf(problem.TokenNameLong, len(name), maxName)
	case strings.Trim(name, letters) != "":
		return problem.Errorf(problem.TokenName, name)
	case name == job.Anonymous || name == job.Itself:
		return problem.Errorf(problem.TokenNameTaken, name)
	}
	return nil
}
