package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go-crontab/internal/failpoint"
	"go-crontab/job"
)

// exchange is one HTTP attempt under way. It belongs to the goroutine of its Execute.
type exchange struct {
	Attempt
	h      *HTTP
	began  time.Time // the node's clock at the instant of Began, which is by MySQL's clock
	filled *job.Call // the next request
	header http.Header
	secret []byte      // for the signature; nil: not signed
	tls    *tlsOptions // nil: none
	kept   *output

	conn   *conn // nil: none
	stage  stage
	hops   int // followed redirects
	answer answer
	note   string // appended to the reason

	answerHeaders                  [][]string    // of the answer, without secrets
	answerProto                    string        // of the answer
	connected, firstByte, complete time.Duration // since began, for the last request
}

// stage is the progress of the latest request.
type stage int

const (
	connecting stage = iota
	waiting          // for the answer: the request was sent, at least in part
	reading          // the answer's body
)

// answer is the status of an answer.
type answer struct {
	status   int
	expected bool
}

func (a answer) String() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", a.status, http.StatusText(a.status)))
}

// Bounds of an answer, in bytes.
const (
	maxAnswer       = 16 << 20  // the body; a longer one is not meant for a scheduler
	maxAnswerHeader = 256 << 10 // the status line and the headers
)

// newExchange prepares the request. It finds every error of the definition before any connection is made.
func (h *HTTP) newExchange(a Attempt) (*exchange, error) {
	x := &exchange{Attempt: a, h: h, began: time.Now()}
	if x.Began.IsZero() {
		x.Began = x.began
	}

	var err error
	if x.filled, err = a.HTTP.Fill(job.Placeholders{
		Due: job.MicrosOf(a.Due), Last: a.lastSuccess(), Attempt: a.Attempt, Given: a.Given, Launch: a.Launch,
		Job: a.Job, App: a.App, Secret: a.known.value, Param: a.param,
	}); err != nil {
		return nil, fmt.Errorf("http.%w", err)
	}
	if x.filled.URL.Host == "" || x.filled.URL.Scheme != "http" && x.filled.URL.Scheme != "https" {
		return nil, fmt.Errorf("http.url: want http:// or https:// and a host")
	}

	if a.HTTP.Sign != nil {
		if x.secret, err = h.secret(&a, a.HTTP.Sign.Secret); err != nil {
			return nil, job.Coded(job.ReasonSecretUnreadable, fmt.Errorf("sign the request: %w", err))
		}
	}
	if a.HTTP.TLS != nil {
		if x.tls, err = h.newTLS(&a, *a.HTTP.TLS); err != nil {
			return nil, err
		}
	}
	x.header = x.headers()

	keep := a.HTTP.BodyLimit
	if keep < 1 || keep > job.MaxBodyLimit {
		keep = job.DefaultBodyLimit
	}
	x.kept = newOutput(keep)
	x.kept.sink, x.kept.hiding = a.Sink, a.known.hiding()
	return x, nil
}

// headers returns the definition's headers and the usual ones.
func (x *exchange) headers() http.Header {
	header := make(http.Header, len(x.filled.Headers)+8)
	launch := x.Launch.String()

	// One allocation for the values of all usual headers, whose names are canonical already.
	values := []string{
		"go-crontab", launch, job.HeaderText(x.App), job.HeaderText(x.Job),
		job.MicrosOf(x.Due).String(), strconv.Itoa(x.Attempt.Attempt), launch,
	}
	set := func(i int) { header[usualHeaders[i]] = values[i : i+1 : i+1] }

	// The definition may replace the first two only.
	set(0)
	set(1)
	for name, value := range x.filled.Headers {
		header.Set(name, value)
	}
	for i := 2; i < len(values); i++ {
		set(i)
	}

	if x.TraceParent != "" {
		header.Set("Traceparent", x.TraceParent)
		if x.TraceState != "" {
			header.Set("Tracestate", x.TraceState)
		}
	}
	return header
}

// usualHeaders are the headers of every request. The definition may replace the first two.
var usualHeaders = [...]string{
	"User-Agent", "Idempotency-Key",
	ownHeader("App"), ownHeader("Job"), ownHeader("Due"), ownHeader("Attempt"), ownHeader("Launch"),
}

func ownHeader(name string) string {
	return textproto.CanonicalMIMEHeaderKey(job.ReservedHeader + name)
}

// run sends the request, follows as many redirects as the definition allows, and reads the answer.
func (x *exchange) run(ctx context.Context) error {
	for {
		resp, err := x.send(ctx)
		if err != nil {
			return err
		}

		followed, err := x.follow(resp)
		switch {
		case followed:
			_, _ = io.CopyN(io.Discard, resp.Body, maxRedirectBody) // so that the connection can be reused
		case err == nil:
			failpoint.Here("behind", "send request")
			err = x.read(resp)
			failpoint.Here("behind", "read answer")
		}

		_ = resp.Body.Close()
		x.leave()
		if !followed {
			return err
		}
	}
}

// maxRedirectBody is the number of bytes that are read of a redirect's body.
const maxRedirectBody = 16 << 10

// send sends one request and returns the answer with its body unread. If the server reports that
// it did not process the request, send repeats it. A server may report this when it closes a
// shared connection.
func (x *exchange) send(ctx context.Context) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := x.sendOnce(ctx)
		if err == nil || try == maxTries || !unseen(err) {
			return resp, err
		}
		x.leave()
	}
}

const maxTries = 3

// unseen reports whether an HTTP/2 error promises that the server did not process the request. By
// RFC 9113 a refused stream promises this, and so does a GOAWAY that names only earlier streams.
func unseen(err error) bool {
	var refused streamError
	return errors.As(err, &refused) && refused.Code == refusedStream ||
		strings.HasSuffix(err.Error(), "graceful shutdown GOAWAY")
}

// streamError stands in for net/http's stream error, which is unexported. errors.As can fill it, because the As method
// of that error fills any type with these fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (streamError) Error() string { return "stream error" }

const refusedStream = 7 // REFUSED_STREAM

func (x *exchange) sendOnce(ctx context.Context) (*http.Response, error) {
	if err := x.ready(ctx); err != nil {
		return nil, err
	}

	req := &http.Request{
		Method: x.filled.Method, URL: x.filled.URL, Host: x.filled.URL.Host, Header: x.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}
	if x.filled.Body != "" {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(x.filled.Body)), int64(len(x.filled.Body))
	}

	if x.secret != nil {
		at := x.Began.Add(time.Since(x.began))
		x.header.Set(signatureHeader, signature(x.secret, Signed{
			At: at, ID: x.Launch.String(), Method: req.Method, Host: req.Host, Target: req.URL.RequestURI(),
			App: job.HeaderText(x.App), Body: x.filled.Body,
		}))
	}

	// If we die from here on, the request may or may not have been processed. The run ends lost.
	x.stage, x.connected = waiting, time.Since(x.began)
	failpoint.Here("before", "send request")
	resp, err := x.conn.RoundTrip(req.WithContext(ctx))
	x.firstByte = time.Since(x.began)
	return resp, err
}

// ready connects to the next request's server, and then checks that the request may be sent.
//
// The spawn window does not apply to a redirect, because the attempt began with the first request.
// But a redirect needs a fresh session. If this process was stopped while the answer arrived,
// other nodes may have reaped the session, and the watchdog will soon end ctx. If MySQL was only
// slow, the session is fresh again soon.
func (x *exchange) ready(ctx context.Context) error {
	x.stage = connecting
	to := destination{scheme: x.filled.URL.Scheme, addr: address(x.filled.URL)}
	for {
		conn, err := x.connect(ctx, to)
		if err != nil {
			return err
		}

		x.conn = conn
		if err = x.refusal(ctx); err == nil {
			return nil
		}
		conn.Release()
		if !errors.Is(err, errUnheld) {
			return err
		}

		x.leave() // a server may close an idle connection during the wait
		if err := x.untilHeld(ctx); err != nil {
			return err
		}
	}
}

// errUnheld makes a redirected request wait.
var errUnheld = errors.New("the node's lease is not fresh")

// refusal returns the reason not to send the next request now; nil: it may be sent.
func (x *exchange) refusal(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case x.hops == 0 && x.May != nil && !x.May():
		return errLate
	case x.hops > 0 && x.Holds != nil && !x.Holds():
		return errUnheld
	}
	return nil
}

// holdPause is the interval of untilHeld's checks.
const holdPause = 50 * time.Millisecond

// untilHeld waits until the session is fresh again, or ctx ends.
func (x *exchange) untilHeld(ctx context.Context) error {
	for !x.Holds() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(holdPause):
		}
	}
	return nil
}

func (x *exchange) connect(ctx context.Context, to destination) (*conn, error) {
	if x.tls == nil || to.scheme != "https" {
		return x.h.pool.take(ctx, to, nil)
	}
	to.tls = x.tls.digest
	return x.h.pool.take(ctx, to, x.tls.config)
}

// leave gives the connection back.
func (x *exchange) leave() {
	if x.conn != nil {
		x.h.pool.done(x.conn, x.stage != connecting)
		x.conn = nil
	}
}

// read keeps the body of the last answer.
func (x *exchange) read(resp *http.Response) error {
	x.stage, x.answer = reading, answer{resp.StatusCode, x.HTTP.Expects(resp.StatusCode)}
	if x.answerProto = resp.Proto; !x.answer.expected { // the headers of good answers are not worth storing
		x.answerHeaders = x.shown(resp.Header)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		x.complete = time.Since(x.began)
		return nil // what follows is not a body
	}

	body := &io.LimitedReader{R: resp.Body, N: maxAnswer}
	if err := x.kept.readAll(body); err != nil {
		return err
	}
	x.complete = time.Since(x.began)
	if body.N == 0 {
		x.note = fmt.Sprintf("the response is longer than %d MiB, so the rest was not read", maxAnswer>>20)
	}
	return nil
}

// maxShownHeaders bounds the headers that are kept, in bytes.
const maxShownHeaders = 4 << 10

// shown returns the headers to keep. It leaves out cookies, because they are credentials, and
// hides the attempt's secrets.
func (x *exchange) shown(h http.Header) (out [][]string) {
	room := maxShownHeaders
	for _, name := range slices.Sorted(maps.Keys(h)) {
		value := strings.ToValidUTF8(x.known.mask(strings.Join(h[name], ", ")), "\uFFFD")
		if name == "Set-Cookie" {
			value = stars
		}
		if room -= len(name) + len(value); room < 0 {
			return out
		}
		out = append(out, []string{name, value})
	}
	return out
}

// details returns what is known of the answer besides its body; nil: there was no answer.
func (x *exchange) details() *job.Answer {
	if x.answer.status == 0 {
		return nil
	}
	return &job.Answer{
		Status: x.answer.status, Proto: x.answerProto, Headers: x.answerHeaders,
		Connected: x.connected.Microseconds(), FirstByte: x.firstByte.Microseconds(),
		Complete: x.complete.Microseconds(),
	}
}

// progress describes how far a stopped call got.
func (x *exchange) progress() string {
	switch {
	case x.stage == reading:
		return "the response (" + x.answer.String() + ") was still arriving"
	case x.stage == waiting:
		return "the request was sent, but there was no response yet"
	case x.hops > 0:
		return "nothing was sent yet to " + x.filled.URL.Host + ", where the server redirected it"
	}
	return "the connection was not established yet, so nothing was sent"
}

// expected returns the status codes of a good answer.
func (x *exchange) expected() string {
	if len(x.HTTP.Expect) == 0 {
		return "2xx"
	}
	return strings.Join(x.HTTP.Expect, ", ")
}

// address returns host:port for a URL.
func address(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// follow prepares the next request if the answer is a redirect that may be followed, and reports
// whether it prepared one. A refused redirect is an error.
func (x *exchange) follow(resp *http.Response) (bool, error) {
	to := resp.Header.Get("Location")
	shown := x.known.mask(to) // masked before %.200q cuts it: half a secret would stay visible
	if x.HTTP.Redirects == 0 || to == "" {
		return false, nil
	}

	// The method and body depend on the status, as in browsers.
	method, body := x.filled.Method, x.filled.Body
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound:
		if method == http.MethodPost {
			method, body = http.MethodGet, ""
		}
	case http.StatusSeeOther:
		body = ""
		if method != http.MethodHead {
			method = http.MethodGet
		}
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return false, nil
	}

	if x.hops++; x.hops > x.HTTP.Redirects {
		return false, strayed(fmt.Sprintf("the server redirected more than %d times, the last time to %.200q",
			x.HTTP.Redirects, shown))
	}

	next, err := x.filled.URL.Parse(to)
	if err != nil || next.Host == "" || next.User != nil ||
		next.Scheme != "https" && next.Scheme != x.filled.URL.Scheme {
		return false, strayed(fmt.Sprintf("the server redirected to %.200q, which is not followed: "+
			"want http or https, no user name, and no http after https", shown))
	}

	x.header = x.header.Clone() // the transport may still read the old one
	if body == "" {
		x.header.Del("Content-Type")
	}
	if x.filled.URL.Scheme != next.Scheme || !strings.EqualFold(address(x.filled.URL), address(next)) {
		if body != "" && job.HasSecrets(x.HTTP.Body, x.secretParams) {
			return false, strayed(fmt.Sprintf("the server redirected to %.200q, which is not followed: "+
				"the body has secrets, and this is another server", shown))
		}
		x.distrust()
	}

	x.filled = &job.Call{Method: method, URL: next, Headers: x.filled.Headers, Body: body}
	return true, nil
}

// strayed is the error of a refused redirect.
type strayed string

func (s strayed) Error() string { return string(s) }

// distrust removes the credentials before a request goes to a server that the definition does not
// name: the signature, the client certificate, and the definition's headers, because each may be a
// credential. The usual headers stay.
func (x *exchange) distrust() {
	for name := range x.filled.Headers {
		harmless := false
		switch textproto.CanonicalMIMEHeaderKey(name) {
		case "Accept", "Content-Type", "User-Agent", "Idempotency-Key":
			harmless = !job.HasSecrets(x.HTTP.Headers[name], x.secretParams)
		}
		if !harmless {
			x.header.Del(name)
		}
	}
	x.secret = nil
	x.header.Del(signatureHeader)
	if x.tls != nil {
		x.tls = x.tls.elsewhere()
	}
}
