package alert

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go-crontab/job"
)

// Secrets reads the values of secrets that an app's jobs may use. App "" stands for the secrets
// that belong to no app.
type Secrets interface {
	Values(ctx context.Context, app string, names []job.Secret) (map[job.Secret]string, error)
}

// Outside calls systems outside the cluster. Use NewOutside.
type Outside struct {
	cfg    OutsideConfig
	client *http.Client
}

// OutsideConfig configures an Outside.
type OutsideConfig struct {
	// Dial connects to host:port if the node may call it.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Sign returns the name and value of a request's signature header.
	Sign func(secret []byte, at time.Time, key string, req *http.Request, body string) (header, value string)
	// Mask removes the values of secrets from a text. It is required if Secrets is set.
	Mask    func(text string, values map[job.Secret]string) string
	Secrets Secrets
	Version string
	Node    string
	// PublicURL is the address of the console for people; "": messages have no links.
	PublicURL string
}

// NewOutside returns an Outside. Call Close when done.
func NewOutside(cfg OutsideConfig) *Outside {
	return &Outside{cfg, &http.Client{
		Transport: &http.Transport{
			DialContext:            cfg.Dial,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxIdleConnsPerHost:    1,
			MaxIdleConns:           20,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			ForceAttemptHTTP2:      true,
		},
		// Do not follow a redirect. Nobody configured its target, and the target must not get the
		// secrets.
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
}

// Close closes idle connections.
func (o *Outside) Close() { o.client.CloseIdleConnections() }

// send tries to send a message once. Its verdict contains no secret.
func (o *Outside) send(ctx context.Context, l *letter) (v verdict) {
	var values map[job.Secret]string
	defer func() {
		if r := recover(); r != nil { // one bad message never stops a node
			v = verdict{err: fmt.Errorf("panic: %v", r), final: true}
		}
		v.said = o.clean(v.said, values)
		if v.err != nil {
			v.err = errors.New(o.clean(v.err.Error(), values))
		}
	}()

	var err error
	if uses := l.channel.Secrets(); len(uses) > 0 {
		if values, err = o.values(ctx, uses); err != nil {
			return verdict{err: err}
		}
	}

	if l.Kind == DeliveryPing {
		return o.ping(ctx, l)
	}

	address := l.channel.URL
	name, isSecret := job.WholeSecret(address)
	if isSecret {
		address = values[name]
	}
	if l.channel.Type != job.ChannelEmail {
		address = strings.TrimSpace(address)
		switch wrong := job.CheckAlertURL(address); {
		case wrong != "" && isSecret: // the usual error would repeat a part of the secret
			return verdict{err: fmt.Errorf("the secret %q is not a valid URL; "+
				"want http:// or https://, a host and a path", name), final: true}
		case wrong != "":
			return verdict{err: errors.New("the url " + wrong), final: true}
		}
	}

	m := l.message()
	switch l.channel.Type {
	case job.ChannelEmail:
		return o.mail(ctx, l, m, values)
	case job.ChannelHeartbeat:
		return o.call(ctx, l, http.MethodGet, address, nil, values)
	case job.ChannelWebhook:
		return o.webhook(ctx, l, m, address, values)
	}

	body, target, err := chat(l, m, address, values, time.Now())
	if err != nil {
		return verdict{err: err, final: true}
	}
	return o.call(ctx, l, http.MethodPost, target, body, values)
}

// values reads the secrets of a channel. A missing secret is not a final error, because it may
// exist later.
func (o *Outside) values(ctx context.Context, uses []job.SecretUse) (map[job.Secret]string, error) {
	if o.cfg.Secrets == nil {
		return nil, errors.New("this node cannot read secrets")
	}
	values, err := o.cfg.Secrets.Values(ctx, "", job.SecretNames(uses))
	if err != nil {
		return nil, err
	}

	for _, u := range uses {
		if _, there := values[u.Name]; !there {
			return values, fmt.Errorf("%s: there is no secret %q for all apps", u.Field, u.Name)
		}
	}
	return values, nil
}

// clean turns a text into one short line without the values of secrets. If a secret is an address,
// clean also removes the path of that address where it stands without the host.
func (o *Outside) clean(text string, values map[job.Secret]string) string {
	if len(values) > 0 {
		hidden := maps.Clone(values)
		for name, v := range values {
			if u, err := url.Parse(strings.TrimSpace(v)); err == nil && u.Host != "" && len(u.RequestURI()) >= 8 {
				hidden[name+" behind its host"] = u.RequestURI()
			}
		}
		text = o.cfg.Mask(text, hidden)
	}

	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	return cutText(text, 400)
}

// cutText shortens a text to most bytes, never inside a character, and marks the cut with "…".
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// pingURL returns the address to call for "success" or "fail"; "": call none.
func pingURL(p *job.Ping, what string) string {
	if what == "fail" {
		return p.FailURL
	}
	return p.URL
}

// hostOf returns the host of an address, with its port.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return cutText(u.Host, 300)
}

// ping calls the address of a job's monitor.
func (o *Outside) ping(ctx context.Context, l *letter) verdict {
	what := ""
	if len(l.items) > 0 {
		what = l.items[0].What
	}
	address := pingURL(l.job.Ping, what)
	if address == "" {
		return verdict{said: "the job no longer has a URL for this ping", state: DeliverySuppressed}
	}
	return o.call(ctx, l, http.MethodGet, address, nil, nil)
}

// webhook sends a message as JSON, or as the channel's template says.
func (o *Outside) webhook(
	ctx context.Context, l *letter, m *job.AlertMessage, address string, values map[job.Secret]string,
) verdict {
	body, err := json.Marshal(webhookBody{Version: 1, Source: "go-crontab", AlertMessage: *m})
	if err != nil {
		return verdict{err: err, final: true}
	}

	if l.channel.Body != "" {
		text, err := job.Render(l.channel.Body, m)
		switch {
		case err == nil:
			body = []byte(text)
		case l.Kind == DeliveryTest: // a test must reveal this
			return verdict{err: fmt.Errorf("the body template failed: %w", err), final: true}
		default:
			l.templates = append(l.templates, fmt.Errorf("the body of the channel %s: %w", l.Channel, err))
		}
	}

	return o.call(ctx, l, http.MethodPost, address, body, values)
}

// webhookBody is the JSON body of a webhook.
type webhookBody struct {
	Version int    `json:"version"`
	Source  string `json:"source"`
	job.AlertMessage
}

// maxAnswer is the number of bytes read of an answer.
const maxAnswer = 16 << 10

// call sends a request and judges the answer.
func (o *Outside) call(
	ctx context.Context, l *letter, method, address string, body []byte, values map[job.Secret]string,
) verdict {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return verdict{err: errors.New("the url cannot be parsed"), final: true}
	}

	// Headers.
	if body != nil {
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	key := hex.EncodeToString(l.Key[:])
	req.Header.Set("User-Agent", strings.TrimSuffix("go-crontab/"+o.cfg.Version, "/"))
	req.Header.Set("Idempotency-Key", key)
	for k, v := range l.channel.Headers {
		filled, err := job.FillSecrets(v, func(name job.Secret) (string, error) { return values[name], nil })
		if err != nil {
			return verdict{err: err, final: true}
		}
		req.Header.Set(k, filled)
	}

	if name, is := job.WholeSecret(l.channel.Sign); is && l.channel.Type == job.ChannelWebhook && o.cfg.Sign != nil {
		header, value := o.cfg.Sign([]byte(values[name]), time.Now(), key, req, string(body))
		req.Header.Set(header, value)
	}

	resp, err := o.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the wrapper contains the URL
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("no response in time")
		}
		return verdict{err: err}
	}
	defer resp.Body.Close()

	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && len(answer) == 0 && resp.StatusCode/100 == 2 {
		return verdict{err: fmt.Errorf("the response broke off: %w", err)}
	}
	said := strings.TrimSpace(resp.Status + " " + string(answer))

	// Judge the status.
	switch code := resp.StatusCode; {
	case code/100 == 2:
		if why := refusedBy(l.channel.Type, answer); why != "" {
			return verdict{err: errors.New(why)}
		}
		return verdict{said: said}
	case code/100 == 3:
		return verdict{
			err:   fmt.Errorf("%s: redirects are not followed; set the final URL", resp.Status),
			final: true,
		}
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout,
		code == http.StatusTooEarly, code >= 500:
		return verdict{err: errors.New(said), after: retryAfter(resp.Header.Get("Retry-After"))}
	}

	return verdict{err: errors.New(said), final: true}
}

// retryAfter returns the pause that a Retry-After header asks for; zero: none.
func retryAfter(text string) time.Duration {
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 100_000 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	return 0
}

// message returns the data for templates and webhooks.
func (l *letter) message() *job.AlertMessage {
	m := &job.AlertMessage{
		Key: hex.EncodeToString(l.Key[:]), Channel: l.Channel, Rule: l.Rule, Count: l.Events,
		Items: l.items, Severity: "info",
	}
	if m.Items == nil {
		m.Items = []job.AlertItem{}
	}
	m.More = max(0, m.Count-int64(len(m.Items)))
	if len(m.Items) > 0 {
		m.Severity = m.Items[0].Severity
	}

	// Slack and servers like it format text, but not code.
	most := cmp.Or(textMost[l.channel.Type], math.MaxInt)
	m.Title, m.Text = builtIn(m, l.channel.Type == job.ChannelSlack, most)

	// The rule's templates replace the built-in texts. If a template fails, the built-in text
	// stays.
	for _, t := range []struct {
		what, text string
		to         *string
	}{{"title", l.rule.Title, &m.Title}, {"text", l.rule.Text, &m.Text}} {
		if t.text == "" {
			continue
		}
		if out, err := job.Render(t.text, m); err == nil {
			*t.to = out
		} else {
			l.templates = append(l.templates, fmt.Errorf("the %s of the rule %s: %w", t.what, l.Rule, err))
		}
	}

	m.Title = strings.Join(strings.Fields(m.Title), " ")
	return m
}
