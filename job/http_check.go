package job

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// validate checks a request. It is filled in as one of the job's would be.
func (h *HTTP) validate(p *Problems, s *Spec) {
	var found Problems
	h.checkMethod(&found)
	checkURL(&found, h.URL)
	h.checkHeaders(&found)
	h.checkBody(&found)
	h.checkAnswer(&found)
	if h.TLS != nil {
		h.TLS.check(&found)
		if strings.HasPrefix(strings.ToLower(h.URL), "http:") {
			found.add("tls", "does nothing for a URL that begins with http://")
		}
	}
	if h.Sign != nil {
		if err := h.Sign.Secret.Check(); err != nil {
			found.add("sign.secret", "%v", err)
		}
	}
	if found == nil {
		h.checkFilled(&found, Placeholders{Due: 1, Attempt: 1, Job: s.Name, App: s.App, Secret: func(Secret) (string, error) { return "secret", nil }})
	}
	for _, q := range found {
		p.add("http."+q.Field, "%s", q.Message)
	}
}

var method = regexp.MustCompile(`^[A-Z][A-Z-]*$`)

const maxMethod = 32 // bytes

func (h *HTTP) checkMethod(p *Problems) {
	switch {
	case len(h.Method) > maxMethod || !method.MatchString(h.Method):
		p.add("method", "%.40q is no method; want one in capital letters, such as GET, POST, PUT, PATCH, DELETE or HEAD", h.Method)
	case h.Method == "CONNECT" || h.Method == "TRACE":
		p.add("method", "%s is not for calling something", h.Method)
	case h.Body != "" && (h.Method == "GET" || h.Method == "HEAD"):
		p.add("method", "%s takes no body; leave the body out, or give a method such as POST", h.Method)
	}
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)

// checkURL checks what can be said before placeholders are filled in. None may stand where it could change whom the
// request goes to.
func checkURL(p *Problems, text string) {
	const want = "want http:// or https://, a host and a path, such as https://example.com/hook?due={{due}}"
	switch {
	case text == "":
		p.add("url", "is empty; %s", want)
		return
	case len(text) > MaxURL:
		p.add("url", "is %d bytes long, at most %d are taken", len(text), MaxURL)
		return
	}
	scheme, rest, found := strings.Cut(text, "://")
	if scheme = strings.ToLower(scheme); !found || scheme != "http" && scheme != "https" {
		p.add("url", "%.100q does not begin with http:// or https://; %s", text, want)
		return
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if strings.Contains(authority, opening) {
		p.add("url", "has a placeholder in its host; they may stand behind it only")
		return
	}
	bare := strings.NewReplacer(opening+" ", opening, " "+closing, closing).Replace(text) // {{ due }} is one, too
	if i := strings.IndexFunc(bare, func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(bare[i:])
		p.add("url", "contains %q; percent-encode it%s", r, inHost(r, authority))
		return
	}
	u, err := url.Parse(scheme + "://" + authority)
	if err != nil {
		p.add("url", "%v", errors.Unwrap(err))
		return
	}
	checkHost(p, u)
	if strings.Contains(text, "#") {
		p.add("url", "has a fragment, which is not sent; write %%23 for a # that is part of it")
	}
}

// inHost says what to do about a character that percent-encoding does not help.
func inHost(r rune, authority string) string {
	if strings.ContainsRune(authority, r) {
		return `, or, in a host name, write its ASCII form ("xn--…")`
	}
	return ""
}

func checkHost(p *Problems, u *url.URL) {
	host := u.Hostname()
	addr, notAddr := netip.ParseAddr(host)
	switch {
	case u.User != nil:
		p.add("url", "has a user or password in it, which everybody who sees the job would read")
	case host == "":
		p.add("url", "has no host")
	case notAddr != nil && (len(host) > 253 || !hostName.MatchString(host)):
		p.add("url", "%.100q is no host", host)
	case addr.Zone() != "":
		p.add("url", "has an address with a zone, which is another one on each node")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			p.add("url", "port %s is not between 1 and 65535", port)
		}
	}
}

// notToGive are headers that the connection, the URL or the node decide about.
var notToGive = map[string]string{
	"Host":              "comes from the URL",
	"Content-Length":    "comes from the body",
	"Transfer-Encoding": "belongs to the connection",
	"Connection":        "belongs to the connection",
	"Keep-Alive":        "belongs to the connection",
	"Proxy-Connection":  "belongs to the connection",
	"Te":                "belongs to the connection",
	"Trailer":           "belongs to the connection",
	"Upgrade":           "belongs to the connection",
	"Http2-Settings":    "belongs to the connection",
	"Expect":            "belongs to the connection",
}

// ReservedHeader begins the names of the headers that tell a server about the attempt.
const ReservedHeader = "X-Gocrontab-"

func (h *HTTP) checkHeaders(p *Problems) {
	if len(h.Headers) > MaxHeaders {
		p.add("headers", "%d of them, at most %d are taken", len(h.Headers), MaxHeaders)
		return
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		field := "headers." + cutName(name)
		if !isToken(name) || len(name) > MaxHeaderName {
			p.add(field, "is no name of a header; want up to %d letters, digits and dashes", MaxHeaderName)
			continue
		}
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if other, twice := seen[canonical]; twice {
			p.add(field, "is given twice, as %s too", other)
		}
		seen[canonical] = name
		if why := notToGive[canonical]; why != "" {
			p.add(field, "%s; leave it out", why)
		}
		if strings.HasPrefix(canonical, ReservedHeader) {
			p.add(field, "is one of the headers that every request gets; leave it out")
		}
		checkHeaderValue(p, field, h.Headers[name])
	}
}

func cutName(name string) string {
	if len(name) > MaxHeaderName {
		name = name[:MaxHeaderName] + "…"
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// isToken tells whether a text is a token of RFC 9110.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// checkHeaderValue takes printable ASCII only: a line break would begin a header of its own, and of the rest nobody
// knows how a server reads it.
func checkHeaderValue(p *Problems, field, value string) {
	if len(value) > MaxHeaderValue {
		p.add(field, "is %d bytes long, at most %d are taken", len(value), MaxHeaderValue)
		return
	}
	for _, r := range value {
		switch {
		case r == '\r' || r == '\n':
			p.add(field, "contains a line break; a header is one line")
			return
		case r != '\t' && (r < ' ' || r > '~'):
			p.add(field, "contains %q; only printable ASCII is taken, so encode it as the server expects it", r)
			return
		}
	}
	if strings.TrimSpace(value) != value {
		p.add(field, "begins or ends with white space, which is not sent")
	}
}

func (h *HTTP) checkBody(p *Problems) {
	switch {
	case len(h.Body) > MaxHTTPBody:
		p.add("body", "is %d bytes long, at most %d are taken", len(h.Body), MaxHTTPBody)
	case !utf8.ValidString(h.Body):
		p.add("body", "is not valid UTF-8")
	}
}

// checkAnswer checks what is said about the answer.
func (h *HTTP) checkAnswer(p *Problems) {
	if len(h.Expect) > MaxExpect {
		p.add("expect", "%d entries, at most %d are taken", len(h.Expect), MaxExpect)
	} else {
		for i, item := range h.Expect {
			if _, _, err := parseStatuses(item); err != nil {
				p.add(fmt.Sprintf("expect[%d]", i), "%v", err)
			}
		}
	}
	if h.BodyLimit < 1 || h.BodyLimit > MaxBodyLimit {
		p.add("body_limit", "%d is not between 1 and %d bytes", h.BodyLimit, MaxBodyLimit)
	}
	if h.Redirects < 0 || h.Redirects > MaxRedirects {
		p.add("redirects", "%d is not between 0 (none are followed) and %d", h.Redirects, MaxRedirects)
	}
}

func (t *HTTPTLS) check(p *Problems) {
	if t.SkipVerify && (t.CA != "" || t.ServerName != "") {
		p.add("tls.skip_verify", "checks nothing, so leave it out, or ca and server_name")
	}
	if t.ServerName != "" && (len(t.ServerName) > 253 || !hostName.MatchString(t.ServerName)) {
		p.add("tls.server_name", "%.100q is no host name", t.ServerName)
	}
	checkPEM(p, "tls.ca", t.CA)
	checkPEM(p, "tls.client_cert", t.ClientCert)
	if (t.ClientCert == "") != (t.ClientKey == "") {
		p.add("tls.client_key", "and client_cert go together; client_key is the name of the secret that holds the key")
	} else if t.ClientKey != "" {
		if err := t.ClientKey.Check(); err != nil {
			p.add("tls.client_key", "%v", err)
		}
	}
}

// checkPEM takes certificates only.
func checkPEM(p *Problems, field, text string) {
	if text == "" {
		return
	}
	if len(text) > MaxPEM {
		p.add(field, "is %d bytes long, at most %d are taken", len(text), MaxPEM)
		return
	}
	rest, n := []byte(text), 0
	for ; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.Contains(block.Type, "KEY") {
			p.add(field, "holds a key, which everybody who sees the job would read; name a secret in client_key")
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			p.add(field, "block %d is no certificate: it is of type %.40q%s", n+1, block.Type, colon(err))
			return
		}
	}
	if n == 0 || strings.TrimSpace(string(rest)) != "" {
		p.add(field, `is no PEM; want certificates that begin with "-----BEGIN CERTIFICATE-----"`)
	}
}

func colon(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// checkFilled checks what comes out when the placeholders are filled in.
func (h *HTTP) checkFilled(p *Problems, values Placeholders) {
	c, err := h.Fill(values)
	var at *fieldError
	if errors.As(err, &at) {
		p.add(at.field, "%v", at.err)
		return
	}
	for name, value := range c.Headers {
		if strings.EqualFold(name, contentType) && isJSON(value) && c.Body != "" && !json.Valid([]byte(c.Body)) {
			p.add("body", "is not JSON once its placeholders are filled in, but its Content-Type is %s; put placeholders into quotes", value)
		}
	}
}
