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

	"go-crontab/job/problem"
)

// validate checks a request by filling it in with sample values.
func (h *HTTP) validate(p *Problems, s *Spec) {
	var found Problems
	h.checkMethod(&found)
	checkURL(&found, "url", h.URL, wantURL)
	h.checkHeaders(&found)
	h.checkBody(&found)
	h.checkAnswer(&found)
	if h.TLS != nil {
		h.TLS.check(&found)
		if strings.HasPrefix(strings.ToLower(h.URL), "http:") {
			found.Add("tls", problem.TLSWithoutHTTPS)
		}
	}

	if h.Sign != nil {
		if err := h.Sign.Secret.Check(); err != nil {
			found.Put("sign.secret", problem.Of(err))
		}
	}

	if found == nil {
		h.checkFilled(&found, Placeholders{
			Due: 1, Attempt: 1, Job: s.Name, App: s.App, Secret: func(Secret) (string, error) { return "secret", nil },
			Param: s.sampleParam,
		})
	}

	for _, q := range found {
		p.Put("http."+q.Field, q.Text)
	}
}

var method = regexp.MustCompile(`^[A-Z][A-Z-]*$`)

const maxMethod = 32 // bytes

func (h *HTTP) checkMethod(p *Problems) {
	switch {
	case len(h.Method) > maxMethod || !method.MatchString(h.Method):
		p.Add("method", problem.NotAMethod, h.Method)
	case h.Method == "CONNECT" || h.Method == "TRACE":
		p.Add("method", problem.MethodNotForCalls, h.Method)
	case h.Body != "" && (h.Method == "GET" || h.Method == "HEAD"):
		p.Add("method", problem.MethodWithoutBody, h.Method)
	}
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)

// wantURL describes the URLs that a job may call.
const wantURL = "give http:// or https://, a host and a path, such as https://example.com/hook?due={{due}}"

// checkURL checks a URL before its placeholders are filled in. It refuses a placeholder at any
// place where the value could send the request to another server. want is the advice for a text
// that is not a URL.
func checkURL(p *Problems, field, text, want string) {
	switch {
	case text == "":
		p.Add(field, problem.Empty.Advise("%s", want))
		return
	case len(text) > MaxURL:
		p.Add(field, problem.TooManyBytes, len(text), MaxURL)
		return
	}

	scheme, rest, found := strings.Cut(text, "://")
	if scheme = strings.ToLower(scheme); !found || scheme != "http" && scheme != "https" {
		p.Add(field, problem.URLScheme.Advise("%s", want), text)
		return
	}

	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}

	if strings.Contains(authority, opening) {
		p.Add(field, problem.URLPlaceholder)
		return
	}

	bare := strings.NewReplacer(opening+" ", opening, " "+closing, closing).Replace(text) // {{ due }} is valid, too
	if i := strings.IndexFunc(bare, func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(bare[i:])
		if strings.ContainsRune(authority, r) {
			p.Add(field, problem.URLCharacterInHost, r)
		} else {
			p.Add(field, problem.URLCharacter, r)
		}
		return
	}

	u, err := url.Parse(scheme + "://" + authority)
	if err != nil {
		p.Add(field, problem.URLUnreadable, errors.Unwrap(err))
		return
	}

	checkHost(p, field, u)
	if strings.Contains(text, "#") {
		p.Add(field, problem.URLFragment)
	}
}

func checkHost(p *Problems, field string, u *url.URL) {
	host := u.Hostname()
	addr, notAddr := netip.ParseAddr(host)
	switch {
	case u.User != nil:
		p.Add(field, problem.URLUser)
	case host == "":
		p.Add(field, problem.URLWithoutHost)
	case notAddr != nil && (len(host) > 253 || !hostName.MatchString(host)):
		p.Add(field, problem.NotAHost, host)
	case addr.Zone() != "":
		p.Add(field, problem.URLZone)
	}

	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			p.Add(field, problem.PortNotBetween, port, 1, 65535)
		}
	}
}

// notToGive lists headers that a job may not set. The connection, the URL or the node sets them.
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

// ReservedHeader is the prefix of headers that describe the attempt to the server.
const ReservedHeader = "X-Gocrontab-"

func (h *HTTP) checkHeaders(p *Problems) {
	if len(h.Headers) > MaxHeaders {
		p.Add("headers", problem.TooMany, len(h.Headers), MaxHeaders)
		return
	}

	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		field := "headers." + cutName(name)
		if !isToken(name) || len(name) > MaxHeaderName {
			p.Add(field, problem.HeaderName, MaxHeaderName)
			continue
		}
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if other, twice := seen[canonical]; twice {
			p.Add(field, problem.HeaderTwice, other)
		}
		seen[canonical] = name
		if why := notToGive[canonical]; why != "" {
			p.Add(field, problem.HeaderNotToGive, why)
		}
		if strings.HasPrefix(canonical, ReservedHeader) {
			p.Add(field, problem.HeaderReserved)
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

// isToken reports whether a text is a token of RFC 9110.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// checkHeaderValue accepts only printable ASCII. A line break would begin another header, and
// servers disagree about all other characters.
func checkHeaderValue(p *Problems, field, value string) {
	if len(value) > MaxHeaderValue {
		p.Add(field, problem.TooManyBytes, len(value), MaxHeaderValue)
		return
	}

	for _, r := range value {
		switch {
		case r == '\r' || r == '\n':
			p.Add(field, problem.HeaderLineBreak)
			return
		case r != '\t' && (r < ' ' || r > '~'):
			p.Add(field, problem.HeaderCharacter, r)
			return
		}
	}

	if strings.TrimSpace(value) != value {
		p.Add(field, problem.HeaderSpace)
	}
}

func (h *HTTP) checkBody(p *Problems) {
	switch {
	case len(h.Body) > MaxHTTPBody:
		p.Add("body", problem.TooManyBytes, len(h.Body), MaxHTTPBody)
	case !utf8.ValidString(h.Body):
		p.Add("body", problem.NotUTF8)
	}
}

// checkAnswer checks the fields about the answer.
func (h *HTTP) checkAnswer(p *Problems) {
	if len(h.Expect) > MaxExpect {
		p.Add("expect", problem.TooMany, len(h.Expect), MaxExpect)
	} else {
		for i, item := range h.Expect {
			if _, _, err := parseStatuses(item); err != nil {
				p.Put(fmt.Sprintf("expect[%d]", i), problem.Of(err))
			}
		}
	}

	if h.BodyLimit < 1 || h.BodyLimit > MaxBodyLimit {
		p.Add("body_limit", problem.NotBetween, h.BodyLimit, 1,
			problem.Shown(MaxBodyLimit, fmt.Sprintf("%d bytes", MaxBodyLimit)))
	}

	if h.Redirects < 0 || h.Redirects > MaxRedirects {
		p.Add("redirects", problem.NotBetween, h.Redirects, problem.Shown(0, "0 (none are followed)"), MaxRedirects)
	}
}

func (t *HTTPTLS) check(p *Problems) {
	if t.SkipVerify && (t.CA != "" || t.ServerName != "") {
		p.Add("tls.skip_verify", problem.TLSChecksNothing)
	}

	if t.ServerName != "" && (len(t.ServerName) > 253 || !hostName.MatchString(t.ServerName)) {
		p.Add("tls.server_name", problem.NotAHostName, t.ServerName)
	}

	checkPEM(p, "tls.ca", t.CA)
	checkPEM(p, "tls.client_cert", t.ClientCert)
	if (t.ClientCert == "") != (t.ClientKey == "") {
		p.Add("tls.client_key", problem.TLSHalfACertificate)
	} else if t.ClientKey != "" {
		if err := t.ClientKey.Check(); err != nil {
			p.Put("tls.client_key", problem.Of(err))
		}
	}
}

// checkPEM accepts only certificates.
func checkPEM(p *Problems, field, text string) {
	if text == "" {
		return
	}

	if len(text) > MaxPEM {
		p.Add(field, problem.TooManyBytes, len(text), MaxPEM)
		return
	}

	rest, n := []byte(text), 0
	for ; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.Contains(block.Type, "KEY") {
			p.Add(field, problem.PEMKey)
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			p.Add(field, problem.PEMNoCertificate, n+1, block.Type, colon(err))
			return
		}
	}

	if n == 0 || strings.TrimSpace(string(rest)) != "" {
		p.Add(field, problem.NotPEM)
	}
}

func colon(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// checkFilled checks the request after its placeholders are filled in.
func (h *HTTP) checkFilled(p *Problems, values Placeholders) {
	c, err := h.Fill(values)
	var at *fieldError
	if errors.As(err, &at) {
		p.Put(at.field, problem.Of(at.err))
		return
	}

	for name, value := range c.Headers {
		if strings.EqualFold(name, contentType) && isJSON(value) && c.Body != "" && !json.Valid([]byte(c.Body)) {
			p.Add("body", problem.BodyNotJSON, value)
		}
	}
}
