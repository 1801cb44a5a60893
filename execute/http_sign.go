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

// signature is the value of that header: "t=1785553200,v1=5257a8…". v1 is the HMAC-SHA256, in
// hexadecimal, of these six, joined by line feeds: "v1", the t (seconds since 1970, when the request was sent), the
// launch, the method, the path with its query as they stand in the request, and the body. A server that checks it
// also checks that t is no more than a few minutes off, and takes each launch once.
func signature(secret []byte, at time.Time, launch, method, target, body string) string {
	t := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.Join([]string{"v1", t, launch, method, target, body}, "\n")))
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
