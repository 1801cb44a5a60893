package job

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// aCertificate is self-signed and long expired: it is only looked at.
const aCertificate = `-----BEGIN CERTIFICATE-----
MIIBQDCB86ADAgECAgEBMAUGAytlcDAPMQ0wCwYDVQQDEwR0ZXN0MB4XDTAxMDEw
-----END CERTIFICATE-----
`

// httpSpec is a definition around a request.
func httpSpec(h HTTP) Spec {
	return Spec{Name: `nightly "sync" 50%/é`, Schedule: "@daily", HTTP: &h}
}

func TestHTTPDefaults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		given, want HTTP
	}{
		"without a body it is GET": {
			HTTP{URL: "http://a"}, HTTP{
				URL: "http://a", Method: "GET", Expect: []string{"2xx"}, BodyLimit: DefaultBodyLimit,
			},
		},
		"with a body it is POST": {
			HTTP{URL: "http://a", Body: "b"}, HTTP{
				URL: "http://a", Body: "b", Method: "POST", Expect: []string{"2xx"}, BodyLimit: DefaultBodyLimit,
			},
		},
		"what is given stays": {
			HTTP{URL: "http://a", Method: "PUT", Expect: []string{"404"}, BodyLimit: 7, Redirects: 2},
			HTTP{URL: "http://a", Method: "PUT", Expect: []string{"404"}, BodyLimit: 7, Redirects: 2},
		},
	} {
		s := httpSpec(tc.given)
		s.Defaults(time.Unix(0, 0))
		if diff := cmp.Diff(&tc.want, s.HTTP); diff != "" || s.Timeout != Duration(DefaultHTTPTimeout) {
			t.Errorf("%s: timeout %s, and (-want +got)\n%s", name, s.Timeout, diff)
		}
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeSpec(text); err != nil || !cmp.Equal(back, s) {
			t.Errorf("%s: stored as %s, read as %+v, %v", name, text, back, err)
		}
	}

	with := Spec{Timeout: Duration(time.Second), HTTP: &HTTP{}}
	if with.Defaults(time.Unix(0, 0)); with.Timeout != Duration(time.Second) {
		t.Errorf("a timeout of a second became %s", with.Timeout)
	}
}

func TestOneExecutor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec  Spec
		field string // with a problem; "": none
	}{
		"a command":           {Spec{Command: "true"}, ""},
		"a request":           {Spec{HTTP: &HTTP{URL: "http://a"}}, ""},
		"nothing":             {Spec{}, "command"},
		"command and request": {Spec{Command: "true", HTTP: &HTTP{URL: "http://a"}}, "http"},
		"request and handler": {Spec{Handler: "x", HTTP: &HTTP{URL: "http://a"}}, "handler"},
	} {
		tc.spec.Name, tc.spec.Schedule = "x", "@daily"
		tc.spec.Defaults(time.Unix(0, 0))
		if got := fieldsOf(tc.spec.Validate()); strings.Join(got, " ") != tc.field {
			t.Errorf("%s: problems with %v, want %q", name, got, tc.field)
		}
	}
}

// fieldsOf lists the fields that have problems.
func fieldsOf(err error) []string {
	var problems Problems
	errors.As(err, &problems)
	var names []string
	for _, p := range problems {
		names = append(names, p.Field)
	}
	return names
}

func TestHTTPIsChecked(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range MaxHeaders + 1 {
		many["A"+strings.Repeat("a", i)] = ""
	}
	header := func(name, value string) HTTP { return HTTP{URL: "http://a", Headers: map[string]string{name: value}} }
	secure := func(o HTTPTLS) HTTP { return HTTP{URL: "https://a", TLS: &o} }
	for name, tc := range map[string]struct {
		http   HTTP
		fields string // with a problem
	}{
		"placeholders all over": {HTTP{
			URL:     "https://example.com:8443/j/{{job}}?a={{app}}&n={{ attempt }}",
			Headers: map[string]string{"X-Run": "{{launch}} {{{{"}, Body: `{"due": "{{due}}"}`,
		}, ""},
		"an address":         {HTTP{URL: "http://127.0.0.1:80/"}, ""},
		"an IPv6 address":    {HTTP{URL: "http://[2001:db8::1]:8080/x"}, ""},
		"its own key":        {header("Idempotency-Key", "{{app}}/{{job}}/{{due}}"), ""},
		"credentials":        {header("Authorization", "Bearer abc=="), ""},
		"an empty header":    {header("X-Empty", ""), ""},
		"an unusual method":  {HTTP{URL: "http://a", Method: "VERSION-CONTROL"}, ""},
		"DELETE with a body": {HTTP{URL: "http://a", Method: "DELETE", Body: "x"}, ""},
		"statuses":           {HTTP{URL: "http://a", Expect: []string{"2XX", "304", "400-404"}}, ""},
		"a number in JSON": {
			HTTP{URL: "http://a", Body: `[{{attempt}}]`,
				Headers: map[string]string{"content-type": "application/json"}}, "",
		},
		"a signature":         {HTTP{URL: "http://a", Sign: &HTTPSign{"billing.v2"}}, ""},
		"another server name": {secure(HTTPTLS{ServerName: "internal.example"}), ""},

		"no URL":                        {HTTP{}, "http.url"},
		"no scheme":                     {HTTP{URL: "example.com/x"}, "http.url"},
		"a file":                        {HTTP{URL: "file:///etc/passwd"}, "http.url"},
		"no host":                       {HTTP{URL: "http:///x"}, "http.url"},
		"a port only":                   {HTTP{URL: "http://:80/x"}, "http.url"},
		"port 0":                        {HTTP{URL: "http://a:0/"}, "http.url"},
		"a port too large":              {HTTP{URL: "http://a:65536/"}, "http.url"},
		"a user":                        {HTTP{URL: "http://me:pass@a/"}, "http.url"},
		"a fragment":                    {HTTP{URL: "http://a/#top"}, "http.url"},
		"a space":                       {HTTP{URL: "http://a/b c"}, "http.url"},
		"a line break in the URL":       {HTTP{URL: "http://a/b\r\nX: y"}, "http.url"},
		"no ASCII":                      {HTTP{URL: "http://a/é"}, "http.url"},
		"a host that is no ASCII":       {HTTP{URL: "http://bücher.example/"}, "http.url"},
		"a zone":                        {HTTP{URL: "http://[fe80::1%25eth0]/"}, "http.url"},
		"a bad escape":                  {HTTP{URL: "http://a/%zz"}, "http.url"},
		"a host out of a placeholder":   {HTTP{URL: "http://{{job}}.example/"}, "http.url"},
		"a port out of a placeholder":   {HTTP{URL: "http://a:{{attempt}}/"}, "http.url"},
		"an unknown placeholder":        {HTTP{URL: "http://a/{{duetime}}"}, "http.url"},
		"a placeholder that never ends": {HTTP{URL: "http://a/{{due"}, "http.url"},
		"a URL too long":                {HTTP{URL: "http://a/" + strings.Repeat("x", MaxURL)}, "http.url"},
		"a method in small letters":     {HTTP{URL: "http://a", Method: "post"}, "http.method"},
		"a method with a line break":    {HTTP{URL: "http://a", Method: "GET /\r\n"}, "http.method"},
		"CONNECT":                       {HTTP{URL: "http://a", Method: "CONNECT"}, "http.method"},
		"GET with a body":               {HTTP{URL: "http://a", Method: "GET", Body: "x"}, "http.method"},
		"a header with a line break":    {header("X-A", "b\r\nX-Evil: c"), "http.headers.X-A"},
		"a header with a line feed":     {header("X-A", "b\nc"), "http.headers.X-A"},
		"a header with a NUL":           {header("X-A", "b\x00c"), "http.headers.X-A"},
		"a header that is no ASCII":     {header("X-A", "é"), "http.headers.X-A"},
		"a header with space around":    {header("X-A", " b"), "http.headers.X-A"},
		"a name with a line break":      {header("X-A: b\r\nX-B", "c"), "http.headers.X-A: b\r\nX-B"},
		"an empty name":                 {header("", "c"), "http.headers."},
		"a header of the connection":    {header("transfer-encoding", "chunked"), "http.headers.transfer-encoding"},
		"Host":                          {header("host", "other"), "http.headers.host"},
		"a header of ours": {
			header("x-gocrontab-signature", "t=1"), "http.headers.x-gocrontab-signature",
		},
		"an unknown one in a header": {header("X-A", "{{secret}}"), "http.headers.X-A"},
		"a header too long":          {header("X-A", strings.Repeat("x", MaxHeaderValue+1)), "http.headers.X-A"},
		"a header twice": {
			HTTP{URL: "http://a", Headers: map[string]string{"X-A": "1", "x-a": "2"}}, "http.headers.x-a",
		},
		"too many headers": {HTTP{URL: "http://a", Headers: many}, "http.headers"},
		"a body too long": {
			HTTP{URL: "http://a", Body: strings.Repeat("x", MaxHTTPBody+1)}, "http.body",
		},
		"a body that is no UTF-8":    {HTTP{URL: "http://a", Body: "\xff"}, "http.body"},
		"an unknown one in the body": {HTTP{URL: "http://a", Body: "{{x}}"}, "http.body"},
		"JSON that is none": {
			HTTP{URL: "http://a", Body: "{", Headers: map[string]string{"Content-Type": "application/json"}},
			"http.body",
		},
		"text without quotes in JSON": {
			HTTP{URL: "http://a", Body: `[{{due}}]`, Headers: map[string]string{"Content-Type": "application/ld+json"}},
			"http.body",
		},
		"not an HTTP status":              {HTTP{URL: "http://a", Expect: []string{"2xx", "ok"}}, "http.expect[1]"},
		"a status that is never the last": {HTTP{URL: "http://a", Expect: []string{"1xx"}}, "http.expect[0]"},
		"a range that is turned around":   {HTTP{URL: "http://a", Expect: []string{"299-200"}}, "http.expect[0]"},
		"too many statuses": {
			HTTP{URL: "http://a", Expect: slices.Repeat([]string{"200"}, MaxExpect+1)}, "http.expect",
		},
		"an answer too long":          {HTTP{URL: "http://a", BodyLimit: MaxBodyLimit + 1}, "http.body_limit"},
		"a negative limit":            {HTTP{URL: "http://a", BodyLimit: -1}, "http.body_limit"},
		"too many redirects":          {HTTP{URL: "http://a", Redirects: MaxRedirects + 1}, "http.redirects"},
		"redirects below 0":           {HTTP{URL: "http://a", Redirects: -1}, "http.redirects"},
		"a secret that is none":       {HTTP{URL: "http://a", Sign: &HTTPSign{"../../etc/passwd"}}, "http.sign.secret"},
		"no secret":                   {HTTP{URL: "http://a", Sign: &HTTPSign{}}, "http.sign.secret"},
		"TLS without TLS":             {HTTP{URL: "http://a", TLS: &HTTPTLS{SkipVerify: true}}, "http.tls"},
		"a check that checks nothing": {secure(HTTPTLS{SkipVerify: true, ServerName: "b"}), "http.tls.skip_verify"},
		"a CA that is none":           {secure(HTTPTLS{CA: "trust me"}), "http.tls.ca"},
		"a CA that does not parse":    {secure(HTTPTLS{CA: aCertificate}), "http.tls.ca"},
		"a key among the certificates": {
			secure(HTTPTLS{CA: "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"}), "http.tls.ca",
		},
		"a certificate without a key": {secure(HTTPTLS{ClientCert: "x"}), "http.tls.client_cert http.tls.client_key"},
		"a server name that is none":  {secure(HTTPTLS{ServerName: "a b"}), "http.tls.server_name"},
		"all at once": {
			HTTP{URL: "x", Method: "x", Redirects: 99}, "http.method http.url http.redirects",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httpSpec(tc.http)
			s.Defaults(time.Unix(0, 0))
			err := s.Validate()
			if got := strings.Join(fieldsOf(err), " "); got != tc.fields {
				t.Errorf("problems with %q, want %q: %v", got, tc.fields, err)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	values := Placeholders{
		Due: MicrosOf(time.Date(2027, 1, 31, 3, 0, 0, 250_000_000, time.UTC)), Attempt: 2,
		Launch: Launch{Run: 30064771079, Claim: 2},
		Job:    `a/b "c" & <é> 5%`, App: "my app",
	}

	const launch = "30064771079-2"
	for name, tc := range map[string]struct {
		http        HTTP
		url, header string // X-H
		media, body string
	}{
		"in a path and a query": {
			http: HTTP{URL: "https://x/{{job}}/{{launch}}?due={{due}}&n={{ attempt }}&a={{app}}"},
			url: "https://x/a%2Fb%20%22c%22%20%26%20%3C%C3%A9%3E%205%25/" + launch +
				"?due=2027-01-31T03%3A00%3A00.25Z&n=2&a=my%20app",
		},
		"in a header": {
			http: HTTP{URL: "http://x", Headers: map[string]string{"X-H": "{{due}} {{job}}"}}, url: "http://x",
			header: `2027-01-31T03:00:00.25Z a/b "c" & <%C3%A9> 5%25`,
		},
		"in JSON": {
			http: HTTP{URL: "http://x", Body: ` {"job": "{{job}}", "n": {{attempt}}}`}, url: "http://x",
			media: "application/json", body: ` {"job": "a/b \"c\" \u0026 \u003cé\u003e 5%", "n": 2}`,
		},
		"in text that looks a bit like JSON": {
			http: HTTP{URL: "http://x", Body: `{{job}} is due`}, url: "http://x",
			media: "text/plain; charset=utf-8", body: `a/b "c" & <é> 5% is due`,
		},
		"in a form": {
			http: HTTP{URL: "http://x", Body: `job={{job}}`,
				Headers: map[string]string{"content-type": "application/x-www-form-urlencoded"}}, url: "http://x",
			media: "application/x-www-form-urlencoded", body: "job=a%2Fb%20%22c%22%20%26%20%3C%C3%A9%3E%205%25",
		},
		"in XML": {
			http: HTTP{URL: "http://x", Body: `<j n="{{attempt}}">{{job}}</j>`,
				Headers: map[string]string{"Content-Type": "application/soap+xml"}}, url: "http://x",
			media: "application/soap+xml", body: `<j n="2">a/b &#34;c&#34; &amp; &lt;é&gt; 5%</j>`,
		},
		"in another type": {
			http:  HTTP{URL: "http://x", Body: `{{job}}`, Headers: map[string]string{"Content-Type": "text/csv"}},
			url:   "http://x",
			media: "text/csv", body: values.Job,
		},
		"braces that are none": {
			http: HTTP{URL: "http://x", Body: `{{{{due}} {{{{{{due}}}}`}, url: "http://x",
			media: "text/plain; charset=utf-8", body: `{{due}} {{2027-01-31T03:00:00.25Z}}`,
		},
	} {
		got, err := tc.http.Fill(values)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		media := got.Headers["Content-Type"] + got.Headers["content-type"]
		if got.URL.String() != tc.url || got.Headers["X-H"] != tc.header || got.Body != tc.body || media != tc.media {
			t.Errorf("%s: got\n%s\nheader %q\n%s %q\nwant\n%s\nheader %q\n%s %q", name, got.URL, got.Headers["X-H"],
				media, got.Body, tc.url, tc.header, tc.media, tc.body)
		}
	}
}

func TestExpects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		expect string
		yes    []int
		no     []int
	}{
		{"", []int{200, 204, 299}, []int{199, 300, 404, 500}},
		{"2xx", []int{200, 299}, []int{300}},
		{"404", []int{404}, []int{200, 403}},
		{"200-202 409", []int{200, 202, 409}, []int{203, 410}},
		{"rubbish", nil, []int{200}}, // only a stored definition can say that
	} {
		h := HTTP{Expect: strings.Fields(tc.expect)}
		for _, status := range tc.yes {
			if !h.Expects(status) {
				t.Errorf("%q does not expect %d", tc.expect, status)
			}
		}

		for _, status := range tc.no {
			if h.Expects(status) {
				t.Errorf("%q expects %d", tc.expect, status)
			}
		}
	}
}
