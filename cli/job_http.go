package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go-crontab/job"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// httpFlags are the flags of `job add` for an HTTP request.
type httpFlags struct {
	request  job.HTTP
	headers  []string
	tls      job.HTTPTLS
	ca, cert string // file names
	key      string
	sign     string
	set      *pflag.FlagSet // all of the above
}

func (f *httpFlags) flags(cmd *cobra.Command) {
	f.set = pflag.NewFlagSet("http", pflag.ContinueOnError)
	f.set.SortFlags = false
	f.set.StringVar(&f.request.URL, "http", "",
		`call this URL instead of running a command; {{due}}, {{last_success}}, {{attempt}},
{{launch}}, {{job}} and {{app}} are replaced in the URL, the headers and the body`)
	f.set.StringVar(&f.request.Method, "method", "", "HTTP method of --http (default GET, with --body POST)")
	f.set.StringArrayVarP(&f.headers, "header", "H", nil, `HTTP header of --http, "Name: value"; may be repeated`)
	f.set.StringVar(&f.request.Body, "body", "", "HTTP body of --http")
	f.set.StringSliceVar(&f.request.Expect, "expect", nil,
		"HTTP statuses that count as success: 204, 2xx, 200-299 (default 2xx)")
	f.set.IntVar(&f.request.BodyLimit, "body-limit", 0, "bytes of the response to keep (default 65536)")
	f.set.IntVar(&f.request.Redirects, "redirects", 0, "most redirects that --http follows (default none)")
	f.set.StringVar(&f.sign, "sign", "", "sign the request with HMAC-SHA256 and the node secret of this name")
	f.set.BoolVar(&f.tls.SkipVerify, "tls-skip-verify", false, "accept any certificate of the server")
	f.set.StringVar(&f.ca, "tls-ca", "", "file with the CA certificates to trust, instead of those of the nodes")
	f.set.StringVar(&f.tls.ServerName, "tls-server-name", "",
		"host name that the server's certificate must have (default the URL's host)")
	f.set.StringVar(&f.cert, "tls-client-cert", "", "file with the client certificate")
	f.set.StringVar(&f.key, "tls-client-key", "", "name of the node secret with the key of the client certificate")
	cmd.Flags().AddFlagSet(f.set)
}

// complete builds the request, or returns nil without --http.
func (f *httpFlags) complete() (*job.HTTP, error) {
	if f.request.URL == "" {
		var alone string
		f.set.VisitAll(func(flag *pflag.Flag) {
			if flag.Changed {
				alone = flag.Name
			}
		})
		if alone != "" {
			return nil, usageError("--%s needs --http URL", alone)
		}
		return nil, nil
	}

	h := f.request
	for _, header := range f.headers {
		name, value, ok := strings.Cut(header, ":")
		if !ok {
			return nil, usageError(`--header %q: want "Name: value"`, header)
		}
		if h.Headers == nil {
			h.Headers = map[string]string{}
		}
		if _, twice := h.Headers[name]; twice {
			return nil, usageError("--header %q is given twice", name)
		}
		h.Headers[name] = strings.TrimSpace(value)
	}

	if f.sign != "" {
		h.Sign = &job.HTTPSign{Secret: job.Secret(f.sign)}
	}

	f.tls.ClientKey = job.Secret(f.key)
	for _, pem := range []struct {
		file string
		to   *string
	}{{f.ca, &f.tls.CA}, {f.cert, &f.tls.ClientCert}} {
		if pem.file == "" {
			continue
		}
		text, err := os.ReadFile(pem.file)
		if err != nil {
			return nil, &exitError{code: exitUsage, err: err}
		}
		*pem.to = string(text)
	}

	if f.tls != (job.HTTPTLS{}) {
		h.TLS = &f.tls
	}

	return &h, nil
}

// what describes the work of a job in one line.
func (j *jobView) what() string {
	switch {
	case j.HTTP != nil:
		return j.HTTP.Method + " " + j.HTTP.URL
	case j.Handler != "":
		return "handler " + j.Handler
	default:
		return j.Command
	}
}

// httpCard adds the request to the card of a job.
func httpCard(d *card, h *job.HTTP) {
	if h == nil {
		return
	}

	d.add("http", h.Method+" "+h.URL)
	for i, name := range slices.Sorted(maps.Keys(h.Headers)) {
		title := ""
		if i == 0 {
			title = "headers"
		}
		d.add(title, name+": "+h.Headers[name])
	}

	d.add("body", h.Body)
	d.add("expect", strings.Join(h.Expect, ", "))
	if h.Redirects > 0 {
		d.add("redirects", fmt.Sprintf("at most %d", h.Redirects))
	}
	if h.Sign != nil {
		d.add("signed", "with the secret "+string(h.Sign.Secret))
	}

	d.add("tls", tlsInFull(h.TLS))
}

func tlsInFull(t *job.HTTPTLS) string {
	if t == nil {
		return ""
	}

	var said []string
	for _, s := range []struct {
		set  bool
		text string
	}{
		{t.SkipVerify, "accepts any certificate"},
		{t.CA != "", "trusts only its own CA"},
		{t.ServerName != "", "expects a certificate for " + t.ServerName},
		{t.ClientCert != "", "client certificate with the key " + string(t.ClientKey)},
	} {
		if s.set {
			said = append(said, s.text)
		}
	}

	return strings.Join(said, "; ")
}
