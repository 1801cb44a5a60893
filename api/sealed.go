package api

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"

	"go-crontab/job"
)

// sealer encrypts kept answers that hold a secret: the text of a new token. The encryption key is
// derived from the token or login of the request. The cluster stores only hashes of tokens and
// logins. So only the original caller can get the answer again. The database alone does not reveal
// the answer.
type sealer struct {
	aead   cipher.AEAD
	digest []byte // of the request
}

func (s *Server) newSealer(r *http.Request, o *job.Once) (*sealer, error) {
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if credential = strings.TrimSpace(credential); credential == "" {
		if _, login := s.loginOf(r); login.Complete() {
			credential = login.String()
		}
	}

	if credential == "" {
		return nil, fmt.Errorf("cannot encrypt the answer to %s: the request has no credential", r.URL.Path)
	}

	key, err := hkdf.Key(sha256.New, []byte(credential), []byte(o.Key), "go-crontab kept answer", 32)
	if err != nil {
		return nil, err
	}

	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}

	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &sealer{aead, o.Digest[:]}, err
}

func (s *sealer) seal(answer []byte) []byte { return s.aead.Seal(nil, nil, answer, s.digest) }

func (s *sealer) open(kept []byte) ([]byte, error) { return s.aead.Open(nil, nil, kept, s.digest) }
