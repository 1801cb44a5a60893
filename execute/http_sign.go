package execute

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"go-crontab/job"
)

const signatureHeader = job.ReservedHeader + "Signature"

// Signed is what the signature of a request covers. A server that checks it has all of that in the request.
type Signed struct {
	At     time.Time // when the request was sent
	ID     string    // the run's id, the header X-Gocrontab-Launch; of an alert the header Idempotency-Key
	Method string
	Host   string // the header Host, with the port if it has one
	Target string // the path with its query, as they stand in the request
	App    string // the header X-Gocrontab-App; of an alert empty
	Body   string
}

// signature is the value of the header: "t=1785553200,v2=5257a8…". v2 is the HMAC-SHA256, in hexadecimal, of these
// eight, joined by line feeds: "v2", the t (seconds since 1970), and the rest in the order of the fields. The host
// and the app keep a server that gets a signature from using it at another one. client.CheckSignature checks it.
func signature(secret []byte, s Signed) string {
	t := fmt.Sprint(s.At.Unix())
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.Join([]string{"v2", t, s.ID, s.Method, s.Host, s.Target, s.App, s.Body}, "\n")))
	return "t=" + t + ",v2=" + hex.EncodeToString(mac.Sum(nil))
}
