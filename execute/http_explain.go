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
		return code, fmt.Sprintf("cannot connect to %.200s: %s", x.known.mask(x.filled.URL.Host), why)
	case waiting:
		return job.ReasonNoAnswer, "the request was sent, but there was no response: " + why
	}
	return job.ReasonAnswerBroken,
		fmt.Sprintf("the response (%s) broke off after %d bytes: %s", x.answer, x.kept.came, why)
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
		return "the DNS server did not respond in time"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return "the DNS lookup failed: " + dns.Err
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the server reset the connection"
	case errors.As(err, &errno):
		return errno.Error() // "connection refused", "no route to host"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &op) && op.Timeout():
		return fmt.Sprintf("no response within %s", connectTimeout)
	}

	text := strings.NewReplacer("net/http: ", "", "HTTP/1.x transport connection broken: ", "").Replace(err.Error())
	if strings.Contains(text, "malformed") {
		return "the server did not send HTTP: " + text
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
		return "TLS: the server does not speak TLS on this port"
	case errors.As(err, &unknown):
		return "TLS: no trusted authority signed the server's certificate (see tls.ca)"
	case errors.As(err, &name):
		return "TLS: the server's certificate is for another host: " + name.Error()
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "TLS: the server's certificate is not valid at this time: " + invalid.Detail
	case errors.As(err, &alert) && alert.Op == "remote error":
		return "TLS: the server rejected the handshake: " + alert.Err.Error()
	case errors.As(err, &verify):
		return "TLS: the server's certificate was rejected: " + verify.Err.Error()
	}
	return ""
}
