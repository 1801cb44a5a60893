package execute

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"go-crontab/job"
)

// explain returns the reason for a missing or incomplete answer.
func (x *exchange) explain(err error) (code job.ReasonCode, text string) {
	if where, ok := errors.AsType[strayed](err); ok {
		return job.ReasonRedirectRefused, where.Error()
	}

	why := plainly(err)
	switch x.stage {
	case connecting:
		code = job.ReasonNoConnection
		if _, ok := errors.AsType[*refusal](err); ok {
			code = job.ReasonAddressRefused
		}
		return code, fmt.Sprintf("no connection to %.200s: %s", x.known.mask(x.filled.URL.Host), why)
	case waiting:
		return job.ReasonNoAnswer, "the request was sent, but there was no answer: " + why
	}
	return job.ReasonAnswerBroken,
		fmt.Sprintf("the answer, %s, broke off after %d bytes: %s", x.answer, x.kept.came, why)
}

// plainly describes a network error in a few words.
func plainly(err error) string {
	if why := plainlyTLS(err); why != "" {
		return why
	}

	var (
		refused *refusal
		dns     *net.DNSError
		errno   syscall.Errno
		op      *net.OpError
	)
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &dns) && dns.IsTimeout:
		return "the name server did not answer in time"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "there is no such host"
	case errors.As(err, &dns):
		return "look up the host: " + dns.Err
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the server broke the connection"
	case errors.As(err, &errno):
		return errno.Error() // "connection refused", "no route to host"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &op) && op.Timeout():
		return fmt.Sprintf("no reply within %s", connectTimeout)
	}

	text := strings.NewReplacer("net/http: ", "", "HTTP/1.x transport connection broken: ", "").Replace(err.Error())
	if strings.Contains(text, "malformed") {
		return "what the server sent is no HTTP: " + text
	}
	return text
}

// plainlyTLS describes a TLS error; "" for other errors.
func plainlyTLS(err error) string {
	var (
		noTLS   tls.RecordHeaderError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		alert   *net.OpError
		verify  *tls.CertificateVerificationError
	)

	switch {
	case errors.As(err, &noTLS):
		return "TLS: the server does not speak TLS at this port"
	case errors.As(err, &unknown):
		return "TLS: the server's certificate is signed by nobody that is trusted here (see tls.ca)"
	case errors.As(err, &name):
		return "TLS: the server's certificate is for another host: " + name.Error()
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "TLS: the server's certificate is not valid at this time: " + invalid.Detail
	case errors.As(err, &alert) && alert.Op == "remote error":
		return "TLS: the server refuses: " + alert.Err.Error()
	case errors.As(err, &verify):
		return "TLS: the server's certificate is not accepted: " + verify.Err.Error()
	}
	return ""
}
