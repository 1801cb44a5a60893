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

// Signed has the parts of a request that its signature covers. The server finds every part in the request.
type Signed struct {
	At     time.Time // when the request was sent
	ID     string    // the launch, in the header X-Gocrontab-Launch; in an alert the header Idempotency-Key
	Method string
	Host   string // the header Host, with the port if it has one
	Target string // the path with its query, as in the request line
	App    string // the header X-Gocrontab-App; empty in an alert
	Body   string
}

// signature returns the value of the header: "t=1785553200,v2=5257a8…". v2 is the hexadecimal
// HMAC-SHA256 of eight parts, joined by line feeds: "v2", the t (seconds since 1970), and the
// other fields of Signed in their order. A server cannot reuse a signature at another server,
// because the host and the app are signed. client.CheckSignature checks signatures.
func signature(secret []byte, s Signed) string {
	t := fmt.Sprint(s.At.Unix())
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.Join([]string{"v2", t, s.ID, s.Method, s.Host, s.Target, s.App, s.Body}, "\n")))
	return "t=" + t + ",v2=" + hex.EncodeToString(mac.Sum(nil))
}
