//go:build unix

package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/sql"

	"github.com/spf13/pflag"
)

// accessSettings are the flags of serve for access to the API and for sign-in.
type accessSettings struct {
	tlsCert, tlsKey string
	insecureHTTP    bool
	hosts           []string
	publicURL       string
	loginLife       time.Duration
	rate            int
	metrics         string
	mostJobs        int // number of jobs with their own metrics

	oidc      auth.OIDCConfig
	oidcRoles []string

	used struct { // set by apply
		tls      *tls.Config
		provider *auth.OIDC
	}
}

func (a *accessSettings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&a.tlsCert, "tls-cert", "",
		"PEM file with the certificate of the API and its chain; read again when it changes")
	flags.StringVar(&a.tlsKey, "tls-key", "", "PEM file with the key of the certificate; read again when it changes")
	flags.BoolVar(&a.insecureHTTP, "insecure-http", false,
		`allow plain HTTP on an address that others can reach; without a TLS proxy in front, tokens can
be read on the network`)

	flags.StringSliceVar(&a.hosts, "host", nil,
		"additional host name under which the API accepts requests; may be repeated, or separated by commas")
	flags.StringVar(&a.publicURL, "public-url", "",
		"URL at which browsers reach the cluster, such as https://cron.example.com (default the --listen address)")

	durationVar(flags, &a.loginLife, "login-life", api.DefaultLoginLife,
		"how long a browser stays signed in, 1m to 90d")
	flags.IntVar(&a.rate, "rate-limit", api.DefaultRate,
		"most requests a second for each token, 0 for no limit; bursts may use five seconds' worth at once")

	choiceVar(flags, &a.metrics, "metrics", "", "token",
		"access to /metrics, by a token for the whole cluster or open to anyone", "token", "open")
	flags.IntVar(&a.mostJobs, "metrics-jobs", node.DefaultMetricsJobs,
		`most jobs with the label "metrics" that get their own series; the others share one`)

	flags.StringVar(&a.oidc.Issuer, "oidc-issuer", "",
		"URL of the OpenID Connect provider for sign-in; needs --public-url")
	flags.StringVar(&a.oidc.ClientID, "oidc-client-id", "", "client id of this application at the provider")
	flags.StringVar(&a.oidc.ClientSecret, oidcSecret, "",
		"client secret of this application at the provider; ps shows it to all users, so prefer\n"+
			"GOCRONTAB_OIDC_CLIENT_SECRET or GOCRONTAB_OIDC_CLIENT_SECRET_FILE")
	durationVar(flags, &a.oidc.Recheck, "oidc-recheck", auth.DefaultRecheck,
		"time between two checks of signed-in people at the provider, 1m to 24h; needs secret keys and\n"+
			"refresh tokens of the provider")
	flags.StringSliceVar(&a.oidc.Scopes, "oidc-scope", nil,
		"additional scope to request from the provider, besides openid, profile and email; may be repeated")
	flags.StringVar(&a.oidc.GroupsClaim, "oidc-groups-claim", "groups",
		"claim with a person's groups; a.b is b in a")
	flags.StringVar(&a.oidc.NameClaim, "oidc-name-claim", "",
		"claim with the name of people in the audit (default the verified email, or preferred_username)")
	flags.StringArrayVar(&a.oidcRoles, "oidc-role", nil,
		"roles of groups, such as admins=admin,devs=operator:app1|app2; may be repeated")
}

// secured reports whether the API speaks TLS.
func (a *accessSettings) secured() bool { return a.tlsCert != "" }

// metricsJobs returns mostJobs in the form of node.Config: 0 is the default, and a negative number
// means none.
func (a *accessSettings) metricsJobs() int {
	if a.mostJobs == 0 {
		return -1
	}
	return a.mostJobs
}

func (a *accessSettings) scheme() string {
	if a.secured() {
		return "https"
	}
	return "http"
}

// check validates the settings without a database. It does not read the certificate. Invalid
// settings prevent every restart, but a certificate that is just being replaced must not prevent
// one.
func (a *accessSettings) check(listen string) error {
	var wrong []error
	refuse := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, usageError(format, args...))
		}
	}

	refuse((a.tlsCert == "") != (a.tlsKey == ""), "--tls-cert and --tls-key are needed together")
	refuse(a.insecureHTTP && a.secured(), "--insecure-http and --tls-cert cannot be combined")
	refuse(a.loginLife < time.Minute || a.loginLife > 90*24*time.Hour, "--login-life %s: want 1m to 90d", a.loginLife)
	refuse(a.oidc.Recheck < time.Minute || a.oidc.Recheck > 24*time.Hour, "--oidc-recheck %s: want 1m to 24h",
		a.oidc.Recheck)
	refuse(a.rate < 0 || a.rate > 1_000_000, "--rate-limit %d: want 1 to 1000000, or 0 for no limit", a.rate)
	refuse(a.mostJobs < 0 || a.mostJobs > 10_000, "--metrics-jobs %d: want 0 to 10000", a.mostJobs)

	wrong = append(wrong, a.checkListen(listen), a.checkPublicURL(), a.checkHosts())
	if _, err := a.provider(nil); err != nil {
		wrong = append(wrong, usageError("%w", err))
	}
	return errors.Join(wrong...)
}

func (a *accessSettings) checkPublicURL() error {
	if a.publicURL != "" {
		u, err := url.Parse(a.publicURL)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil ||
			strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return usageError("--public-url %q: want a URL without a path, such as https://cron.example.com",
				a.publicURL)
		}
	}
	return nil
}

// checkHosts refuses invalid host names. If one were accepted, requests to the intended host would
// be refused.
func (a *accessSettings) checkHosts() error {
	for _, name := range a.hosts {
		if _, err := netip.ParseAddr(name); err == nil || name == "" {
			continue
		}
		if u, err := url.Parse("http://" + name); err != nil || u.Host != name || !isHost(u.Hostname()) {
			return usageError("--host %q: want a host name, such as cron.example.com", name)
		}
	}

	return nil
}

// checkListen refuses plain HTTP on an address that others can reach, because an eavesdropper could
// read tokens. --insecure-http allows it.
func (a *accessSettings) checkListen(listen string) error {
	host, _, _ := net.SplitHostPort(listen)
	if !isListen(listen) {
		return usageError("--listen %q: want host:port, such as 127.0.0.1:8610", listen)
	}
	if local(host) || a.secured() || a.insecureHTTP {
		return nil
	}

	return &exitError{
		code: exitUsage,
		err: fmt.Errorf("--listen %q: others can reach this address, and plain HTTP exposes tokens on the network",
			listen),
		hint: "use TLS:         --tls-cert FILE --tls-key FILE\n" +
			"stay local:      --listen 127.0.0.1:8610, behind a proxy on this machine or ssh -L\n" +
			"use HTTP anyway: --insecure-http, behind a TLS proxy on another machine",
	}
}

func local(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// provider returns the client of the identity provider. Without a provider it returns nil. now is
// MySQL's clock.
func (a *accessSettings) provider(now func() time.Time) (*auth.OIDC, error) {
	if a.oidc.Issuer == "" {
		if a.oidc.ClientID != "" || a.oidc.ClientSecret != "" || len(a.oidc.Scopes) > 0 || a.oidc.NameClaim != "" ||
			len(a.oidcRoles) > 0 {
			return nil, errors.New("--oidc-issuer is missing; the other OIDC settings need it")
		}
		return nil, nil
	}

	cfg := a.oidc
	cfg.PublicURL, cfg.Now, cfg.Roles = a.publicURL, now, auth.RoleMap{}
	for _, list := range a.oidcRoles {
		if err := cfg.Roles.Add(list); err != nil {
			return nil, fmt.Errorf("--oidc-role: %w", err)
		}
	}

	o, err := auth.NewOIDC(cfg)
	if err != nil {
		return nil, fmt.Errorf("OIDC: %w", err)
	}
	return o, nil
}

// apply fills in the API's settings.
func (a *accessSettings) apply(cfg *api.Config, log *slog.Logger) (err error) {
	cfg.Hosts, cfg.PublicURL, cfg.LoginLife, cfg.Rate = a.hosts, a.publicURL, a.loginLife, a.rate
	cfg.OpenMetrics = a.metrics == "open"
	if a.rate == 0 {
		cfg.Rate = -1
	}
	if cfg.OIDC, err = a.provider(cfg.Now); err != nil {
		return err
	}
	cfg.TLS, err = a.certificate(log)
	a.used.tls, a.used.provider = cfg.TLS, cfg.OIDC
	return err
}

// notes reports when the node's certificate expires, and whether the node reaches the OIDC issuer.
func (a *accessSettings) notes(ctx context.Context) (out []sql.NodeNote) {
	if a.used.tls != nil {
		pair, err := a.used.tls.GetCertificate(nil)
		if err == nil && pair.Leaf != nil {
			out = append(out, sql.NodeNote{What: sql.NoteCertificate, Expires: job.MicrosOf(pair.Leaf.NotAfter)})
		}
	}
	if a.used.provider != nil {
		note := sql.NodeNote{What: sql.NoteOIDC}
		if err := a.used.provider.Reach(ctx); err != nil {
			note.Error = err.Error()
		}
		out = append(out, note)
	}
	return out
}

func (a *accessSettings) certificate(log *slog.Logger) (*tls.Config, error) {
	if !a.secured() {
		return nil, nil
	}
	return api.LoadTLS(a.tlsCert, a.tlsKey, log)
}

// providerTimeout limits the first request to the identity provider.
const providerTimeout = 10 * time.Second

// tryProvider warns if the identity provider does not respond. The node still starts: tokens work
// without the provider, and a later sign-in tries the provider again.
func tryProvider(provider *auth.OIDC, issuer string, log *slog.Logger) {
	if provider == nil {
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), providerTimeout)
	defer cancel()
	if _, _, err := provider.Begin(ctx); err != nil {
		log.Warn("the identity provider does not respond: nobody can sign in with it until it does",
			"issuer", issuer, "error", err)
	}
}

// warn logs the risks of these settings.
func (a *accessSettings) warn(log *slog.Logger, listen string, keys bool) {
	if a.oidc.Issuer != "" && !keys {
		log.Warn("without secret keys, roles of signed-in people are not checked again at the identity provider " +
			"until the sign-in ends; see --secret-key-file and --login-life")
	}
	if host, _, err := net.SplitHostPort(listen); err == nil && !local(host) && !a.secured() {
		log.Warn("the API uses plain HTTP on an address that others can reach: without a TLS proxy in front, "+
			"tokens can be read on the network", "listen", listen)
	}
}
