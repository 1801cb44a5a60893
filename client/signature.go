package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// SignatureAge is the largest accepted difference between the time of the signature and the
// server's clock.
const SignatureAge = 5 * time.Minute

// CheckSignature checks who sent a request: a job or an alert with this secret. It also checks that
// the request was sent to this host and path, with this body, and at most [SignatureAge] before
// now. The host is r.Host, so a proxy must keep it.
//
// The request may still be a replay. To exclude replays, accept each X-Gocrontab-Launch only once.
// For an alert, accept each Idempotency-Key only once.
func CheckSignature(r *http.Request, body, secret []byte, now time.Time) error {
	header := r.Header.Get("X-Gocrontab-Signature")
	if header == "" {
		return errors.New("the request is not signed")
	}

	seconds, sum, _ := strings.Cut(strings.TrimPrefix(header, "t="), ",v2=")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("the signature %q does not have the form t=SECONDS,v2=HEX", header)
	}

	if age := now.Sub(time.Unix(at, 0)); age.Abs() > SignatureAge {
		return fmt.Errorf("the request was signed at %s, which is too far from now", time.Unix(at,
			0).UTC().Format(time.RFC3339))
	}

	id := r.Header.Get("X-Gocrontab-Launch")
	if id == "" {
		id = r.Header.Get("Idempotency-Key")
	}

	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.Join([]string{
		"v2", seconds, id, r.Method, r.Host, r.RequestURI, r.Header.Get("X-Gocrontab-App"), string(body),
	}, "\n")))
	if got, err := hex.DecodeString(sum); err != nil || !hmac.Equal(got, mac.Sum(nil)) {
		return errors.New("the signature does not match the request")
	}

	return nil
}
