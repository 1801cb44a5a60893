package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"mime"
	"net/url"
	"strings"
	"time"
)

// CallsPerSlot is the number of HTTP requests that share a slot of a node. A slot represents a
// process with its memory and its share of a processor. A request mostly waits for the server. It
// takes its share when its start is committed, up to a quarter of a second before it is due.
const CallsPerSlot = 16

// HTTP is a request that a job sends instead of running a command. Placeholders are allowed in the
// URL after the host, in header values and in the body.
type HTTP struct {
	Method    string            `json:"method,omitempty"` // default: GET without a body, POST with one
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers,omitempty"`
	Body      string            `json:"body,omitempty"`
	Expect    []string          `json:"expect,omitempty"`     // statuses that mean success: "2xx", "404", "200-299"
	BodyLimit int               `json:"body_limit,omitempty"` // bytes of the answer to keep, half from its end
	Redirects int               `json:"redirects,omitempty"`  // redirects to follow at most; 0: none
	TLS       *HTTPTLS          `json:"tls,omitempty"`
	Sign      *HTTPSign         `json:"sign,omitempty"`
}

// HTTPTLS adapts https for servers for which the system's certificates are not enough.
type HTTPTLS struct {
	SkipVerify bool   `json:"skip_verify,omitempty"` // accept any server certificate
	CA         string `json:"ca,omitempty"`          // PEM: replaces the system's trusted certificates
	ServerName string `json:"server_name,omitempty"` // name in the server's certificate; default: the URL's host
	ClientCert string `json:"client_cert,omitempty"` // PEM: the client's certificate with its chain
	ClientKey  Secret `json:"client_key,omitempty"`  // its key, PEM
}

// HTTPSign signs requests with HMAC-SHA256.
type HTTPSign struct {
	Secret Secret `json:"secret"`
}

// Bounds of a request, and defaults.
const (
	MaxURL         = 4 << 10 // bytes, as are the next three
	MaxHeaderName  = 128
	MaxHeaderValue = 4 << 10
	MaxHTTPBody    = 64 << 10
	MaxHeaders     = 32
	MaxExpect      = 16
	MaxRedirects   = 10
	MaxPEM         = 32 << 10 // bytes

	DefaultBodyLimit = 64 << 10  // bytes of the answer
	MaxBodyLimit     = 256 << 10 // bytes of the answer

	// DefaultHTTPTimeout is the timeout of HTTP jobs that set none. Without it, a server that never
	// answers would block them forever.
	DefaultHTTPTimeout = 5 * time.Minute
)

func (s *Spec) httpDefaults() {
	h := s.HTTP
	if h == nil {
		return
	}

	if s.Timeout == 0 {
		s.Timeout = Duration(DefaultHTTPTimeout)
	}

	if h.Method == "" {
		h.Method = "GET"
		if h.Body != "" {
			h.Method = "POST"
		}
	}

	if len(h.Expect) == 0 {
		h.Expect = []string{"2xx"}
	}

	if h.BodyLimit == 0 {
		h.BodyLimit = DefaultBodyLimit
	}
}

// Call is a request with its placeholders filled in.
type Call struct {
	Method  string
	URL     *url.URL
	Headers map[string]string // from the definition, with Content-Type if there is a body
	Body    string
}

// NamesLastSuccess reports whether a text of the request may contain the placeholder last_success.
func (h *HTTP) NamesLastSuccess() bool {
	const name = "last_success"
	if strings.Contains(h.URL, name) || strings.Contains(h.Body, name) {
		return true
	}
	for _, value := range h.Headers {
		if strings.Contains(value, name) {
			return true
		}
	}
	return false
}

// Fill fills the placeholders in. The escaping of a value depends on its place:
//
//   - In the URL it is percent-encoded.
//   - In a JSON, XML or form body it is escaped as text of that type. In any other body it is
//     unchanged.
//   - In a header, all but printable ASCII is percent-encoded, and so is the percent sign.
//
// Secrets in headers are not encoded, because servers expect the exact value. A secret that no
// header can hold is an error.
func (h *HTTP) Fill(p Placeholders) (*Call, error) {
	c := &Call{Method: h.Method}
	text, err := p.fill(h.URL, percent, nil)
	if err == nil {
		c.URL, err = url.Parse(text)
		var long *url.Error // repeats the whole URL
		if errors.As(err, &long) {
			err = long.Err
		}
	}
	if err != nil {
		return nil, &fieldError{"url", err}
	}

	c.Headers = make(map[string]string, len(h.Headers)+1)
	given := ""
	for name, template := range h.Headers {
		value, err := p.fill(template, headerText, headerSecret)
		if err != nil {
			return nil, &fieldError{"headers." + name, err}
		}
		c.Headers[name] = value
		if strings.EqualFold(name, contentType) {
			given = value
		}
	}

	if h.Body == "" {
		return c, nil
	}

	media := given
	if c.Body, media, err = p.fillBody(h.Body, given); err != nil {
		return nil, &fieldError{"body", err}
	}

	if given == "" {
		c.Headers[contentType] = media
	}

	return c, nil
}

// fieldError is a problem with a field of a request.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.field + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

const contentType = "Content-Type"

// The media types of bodies whose definition names no type.
const (
	mediaJSON = "application/json"
	mediaText = "text/plain; charset=utf-8"
)

// fillBody fills a body of the given type. If no type is given, the body is JSON if the result
// parses as an object or array. Otherwise it is text.
func (p *Placeholders) fillBody(template, given string) (body, media string, err error) {
	if given == "" {
		body, err = p.fill(template, jsonText, escaped(jsonText))
		if err != nil || isDocument(body) {
			return body, mediaJSON, err
		}
		given = mediaText
	}

	escape := escapeFor(given)
	body, err = p.fill(template, escape, escaped(escape))
	return body, given, err
}

// escaped gives secrets the same escaping as other values.
func escaped(escape func(string) string) func(string) (string, error) {
	return func(s string) (string, error) { return escape(s), nil }
}

// isDocument reports whether a text is a JSON object or array.
func isDocument(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Valid([]byte(text))
}

// isJSON reports whether a content type means JSON.
func isJSON(given string) bool {
	media, _, err := mime.ParseMediaType(given)
	return err == nil && (media == mediaJSON || strings.HasSuffix(media, "+json"))
}

// escapeFor returns the escaping for a body of a type.
func escapeFor(given string) func(string) string {
	media, _, _ := mime.ParseMediaType(given)
	switch {
	case isJSON(given):
		return jsonText
	case media == "application/x-www-form-urlencoded":
		return percent
	case media == "application/xml", media == "text/xml", media == "text/html", strings.HasSuffix(media, "+xml"):
		return html.EscapeString
	}

	return func(s string) string { return s }
}

// jsonText escapes a text for use between the quotes of a JSON string.
func jsonText(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil { // cannot happen with a string
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// percent encodes everything except the unreserved characters of RFC 3986. The result is a single
// segment of a path, or a single value of a query.
func percent(s string) string {
	return percentEncode(s, func(c byte) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
	})
}

// headerText encodes all but printable ASCII, because headers have no character set.
func headerText(s string) string {
	return percentEncode(s, func(c byte) bool { return ' ' <= c && c <= '~' && c != '%' })
}

// HeaderText encodes any text as a header value that can be decoded again. It percent-encodes the
// percent sign and all but printable ASCII.
func HeaderText(s string) string { return headerText(s) }

func percentEncode(s string, keep func(byte) bool) string {
	var b strings.Builder
	for i := range len(s) {
		if keep(s[i]) {
			b.WriteByte(s[i])
			continue
		}
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}
