package job

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"go-crontab/job/problem"
)

// ChannelType is the way a channel sends alerts.
type ChannelType string

// The types.
const (
	ChannelWebhook   ChannelType = "webhook"   // our JSON, signed
	ChannelSlack     ChannelType = "slack"     // an incoming webhook of Slack, or compatible (Mattermost)
	ChannelFeishu    ChannelType = "feishu"    // a custom bot of Feishu or Lark
	ChannelDingTalk  ChannelType = "dingtalk"  // a custom robot of DingTalk
	ChannelWeCom     ChannelType = "wecom"     // a group robot of WeCom
	ChannelEmail     ChannelType = "email"     // by SMTP
	ChannelPagerDuty ChannelType = "pagerduty" // events of the API v2
	ChannelHeartbeat ChannelType = "heartbeat" // a URL that is called as long as all is well
)

// ChannelTypes lists all types.
func ChannelTypes() []ChannelType {
	return []ChannelType{
		ChannelWebhook, ChannelSlack, ChannelFeishu, ChannelDingTalk, ChannelWeCom, ChannelEmail, ChannelPagerDuty,
		ChannelHeartbeat,
	}
}

// AlertChannel is a destination of alerts.
type AlertChannel struct {
	Name        string            `json:"name" doc:"Its name, which cannot be changed."`
	Description string            `json:"description,omitempty" doc:"A description, for people."`
	Type        ChannelType       `json:"type" enum:"webhook,slack,feishu,dingtalk,wecom,email,pagerduty,heartbeat" doc:"The type of the channel."`
	Disabled    bool              `json:"disabled,omitempty" doc:"Whether the channel is off. Then messages are not sent, but counted as suppressed."`
	URL         string            `json:"url,omitempty" doc:"The address to POST to. '{{secret.NAME}}' takes the whole address from a secret, as chats need. Mail channels have none, and pagerduty has a default. Only admins see more of it than its host."`
	Headers     map[string]string `json:"headers,omitempty" doc:"Additional headers of a webhook. '{{secret.NAME}}' stands for a secret."`
	Sign        string            `json:"sign,omitempty" doc:"The secret that signs a webhook, or that a bot of feishu or dingtalk requires for signatures, as '{{secret.NAME}}'."`
	Body        string            `json:"body,omitempty" doc:"A template for the body of a webhook. Default: the built-in JSON."`
	RoutingKey  string            `json:"routing_key,omitempty" doc:"For pagerduty: the integration key, as '{{secret.NAME}}'."`
	Email       *AlertEmail       `json:"email,omitempty" doc:"For email, which requires it."`
	Every       Duration          `json:"every,omitempty" doc:"For a heartbeat: how often it is called, from 10s to 24h. Default 1m."`
	Wait        Duration          `json:"wait,omitempty" doc:"How long the first event of a message waits for others to join it, up to 10m. Default 5s."`
	Rate        int               `json:"rate,omitempty" doc:"The most messages a minute, including retries, from 1 to 600. Further events wait and share a message. Default 20."`
	Timeout     Duration          `json:"timeout,omitempty" doc:"How long the channel may take to respond, from 1s to 30s. Default 10s."`
}

// AlertEmail is an SMTP server with its settings and recipients.
type AlertEmail struct {
	Server   string   `json:"server" doc:"The mail server, as host:port."`
	TLS      string   `json:"tls,omitempty" enum:"starttls,tls,none" doc:"Whether the connection switches to TLS (starttls, the default), uses TLS from the start (tls), or is not encrypted (none), which is only possible without a password."`
	User     string   `json:"user,omitempty" doc:"The user name for the mail server. Absent: none."`
	Password string   `json:"password,omitempty" doc:"The password of the user, as '{{secret.NAME}}'."`
	From     string   `json:"from" doc:"The sender's address, such as go-crontab@example.com."`
	To       []string `json:"to,omitempty" doc:"The addresses of the recipients."`
	ToOwner  bool     `json:"to_owner,omitempty" doc:"Whether mail goes to the owner of the job instead, if the owner is a mail address."`
}

// Defaults of channels.
const (
	DefaultChannelWait    = Duration(5 * time.Second)
	DefaultChannelRate    = 20
	DefaultChannelTimeout = Duration(10 * time.Second)
	DefaultHeartbeat      = Duration(time.Minute)
	PagerDutyURL          = "https://events.pagerduty.com/v2/enqueue"
)

// Defaults fills empty fields.
func (c *AlertChannel) Defaults() {
	if c.Type != ChannelHeartbeat && c.Wait == 0 {
		c.Wait = DefaultChannelWait
	}

	if c.Type == ChannelHeartbeat && c.Every == 0 {
		c.Every = DefaultHeartbeat
	}

	if c.Type == ChannelPagerDuty && c.URL == "" {
		c.URL = PagerDutyURL
	}

	if c.Rate == 0 {
		c.Rate = DefaultChannelRate
	}

	if c.Timeout == 0 {
		c.Timeout = DefaultChannelTimeout
	}

	if c.Email != nil && c.Email.TLS == "" {
		c.Email.TLS = "starttls"
	}
}

// WholeSecret returns the secret if the text is the placeholder of a secret and nothing else.
func WholeSecret(text string) (Secret, bool) {
	name, found := strings.CutPrefix(strings.TrimSpace(text), opening)
	name, closed := strings.CutSuffix(name, closing)
	name, is := strings.CutPrefix(strings.TrimSpace(name), "secret.")
	s := Secret(name)
	return s, found && closed && is && s.Check() == nil
}

// Secrets lists the secrets of a valid channel with the fields that name them.
func (c *AlertChannel) Secrets() []SecretUse {
	var uses []SecretUse
	whole := func(field, text string) {
		if name, is := WholeSecret(text); is {
			uses = append(uses, SecretUse{Field: field, Name: name})
		}
	}

	whole("url", c.URL)
	whole("sign", c.Sign)
	whole("routing_key", c.RoutingKey)
	if c.Email != nil {
		whole("email.password", c.Email.Password)
	}

	for _, k := range slices.Sorted(maps.Keys(c.Headers)) {
		_, _ = fillSecrets(c.Headers[k], func(name Secret) (string, error) {
			uses = append(uses, SecretUse{Field: "headers." + k, Name: name})
			return "", nil
		})
	}

	return uses
}

// MissingSecrets returns a problem for each secret of the channel that does not exist. A channel
// belongs to no app, so it can only use secrets that belong to no app. exist holds the existing
// secrets.
func (c *AlertChannel) MissingSecrets(exist map[AppSecret]bool) (p Problems) {
	for _, u := range c.Secrets() {
		if !exist[AppSecret{"", u.Name}] {
			p.Add(u.Field, problem.NoSecretOfAll.Advise("create it first: go-crontab secret set %s", u.Name), u.Name)
		}
	}
	return p
}

// alerts reports whether some event of the rule raises an alert.
func (r *AlertRule) alerts() bool {
	return slices.ContainsFunc(r.On, func(e AlertEvent) bool { return e != AlertRecovered && !e.Once() })
}

// MissingChannels returns a problem for each channel of the rule that does not exist or cannot take
// alerts. types holds the existing channels.
func (r *AlertRule) MissingChannels(types map[string]ChannelType) (p Problems) {
	for i, name := range r.Channels {
		switch t, there := types[name]; {
		case !there:
			p.Add(fmt.Sprintf("channels[%d]", i),
				problem.NoChannel.Advise("create it first: go-crontab alert channel set %s", shorten(name)),
				shorten(name))
		case t == ChannelHeartbeat:
			p.Add(fmt.Sprintf("channels[%d]", i), problem.ChannelIsHeartbeat, shorten(name))
		case t == ChannelPagerDuty && !r.alerts():
			p.Add(fmt.Sprintf("channels[%d]", i),
				problem.ChannelIsPager.Advise("name an event that lasts, such as failed, or another channel"),
				shorten(name))
		}
	}
	return p
}

// FillSecrets puts the values of secrets into a text.
func FillSecrets(text string, value func(Secret) (string, error)) (string, error) {
	return fillSecrets(text, value)
}

// CheckAlertURL checks an address that a node is to call. It returns the problem. Without a problem
// it returns "".
func CheckAlertURL(text string) string {
	var p Problems
	checkURL(&p, "url", text, wantURL)
	if p == nil {
		return ""
	}
	return p[0].Message
}

// Validate returns all problems of a channel, as Problems, or nil. The channel must have its
// defaults filled in.
func (c *AlertChannel) Validate() error {
	var p Problems
	checkName(&p, "name", c.Name)
	checkText(&p, "description", c.Description, MaxText)
	if !slices.Contains(ChannelTypes(), c.Type) {
		p.Add("type", problem.NotOneOf, shorten(string(c.Type)), words(ChannelTypes()))
		return p
	}

	c.checkAddress(&p)
	c.checkExtras(&p)
	if c.Type == ChannelHeartbeat {
		checkSpan(&p, "every", c.Every, 10*time.Second, 24*time.Hour)
		if c.Wait != 0 {
			p.Add("wait", problem.NotWith, c.Type)
		}
	} else {
		checkSpan(&p, "wait", c.Wait, 0, 10*time.Minute)
		if c.Every != 0 {
			p.Add("every", problem.OnlyWith, problem.Shown("heartbeat", "type heartbeat"))
		}
	}

	switch beats := c.beatsPerMinute(); {
	case c.Rate < 1 || c.Rate > 600:
		p.Add("rate", problem.NotBetween, c.Rate, 1, problem.Shown(600, "600 messages a minute"))
	case c.Rate < beats:
		p.Add("rate", problem.RateTooLow, c.Rate, c.Every, beats)
	}

	checkSpan(&p, "timeout", c.Timeout, time.Second, 30*time.Second)
	return p.orNil()
}

// beatsPerMinute is the largest number of messages that a heartbeat channel sends in a minute.
func (c *AlertChannel) beatsPerMinute() int {
	every := time.Duration(c.Every)
	if c.Type != ChannelHeartbeat || every < 10*time.Second { // validation refuses that
		return 0
	}
	return int((time.Minute + every - 1) / every)
}

func (c *AlertChannel) checkAddress(p *Problems) {
	if c.Type == ChannelEmail {
		if c.URL != "" {
			p.Add("url", problem.NotWith.Advise("give email.server"), "email")
		}
		if c.Email == nil {
			p.Add("email", problem.Missing.Advise(`give {"server": "mail.example.com:587", "from": "…", "to": ["…"]}`))
			return
		}
		c.Email.check(p)
		return
	}

	if c.Email != nil {
		p.Add("email", problem.OnlyWith, problem.Shown("email", "type email"))
	}

	checkSecretOrURL(p, "url", c.URL)
}

// checkSecretOrURL accepts only a URL, or a secret that holds the whole URL.
func checkSecretOrURL(p *Problems, field, text string) {
	if _, is := WholeSecret(text); is {
		return
	}
	if strings.Contains(text, opening) {
		p.Add(field, problem.URLPartlySecret)
		return
	}
	checkURL(p, field, text, "give a URL such as https://example.com/alerts, or {{secret.NAME}} for a secret one")
}

func (c *AlertChannel) checkExtras(p *Problems) {
	only := func(field string, given bool, types ...ChannelType) bool {
		if given && !slices.Contains(types, c.Type) {
			p.Add(field, problem.NotWith.Advise("it is only for %s", words(types)), c.Type)
			return false
		}
		return given
	}

	if only("headers", len(c.Headers) > 0, ChannelWebhook, ChannelHeartbeat) {
		c.checkHeaders(p)
	}

	if only("body", c.Body != "", ChannelWebhook) {
		checkTemplate(p, "body", c.Body)
	}

	if only("sign", c.Sign != "", ChannelWebhook, ChannelFeishu, ChannelDingTalk) {
		checkWholeSecret(p, "sign", c.Sign)
	}

	if only("routing_key", c.RoutingKey != "", ChannelPagerDuty) {
		checkWholeSecret(p, "routing_key", c.RoutingKey)
	} else if c.Type == ChannelPagerDuty {
		p.Add("routing_key",
			problem.Missing.Advise(
				"store the integration key with go-crontab secret set NAME, and write {{secret.NAME}}"))
	}
}

func checkWholeSecret(p *Problems, field, text string) {
	if _, is := WholeSecret(text); !is {
		p.Add(field, problem.NotAWholeSecret)
	}
}

func (c *AlertChannel) checkHeaders(p *Problems) {
	if len(c.Headers) > MaxHeaders {
		p.Add("headers", problem.TooMany, len(c.Headers), MaxHeaders)
		return
	}

	for _, k := range slices.Sorted(maps.Keys(c.Headers)) {
		field, v := "headers."+k, c.Headers[k]
		switch why := notToGive[http.CanonicalHeaderKey(k)]; {
		case len(k) > MaxHeaderName || !isToken(k):
			p.Add("headers", problem.NotAHeader, k)
		case why != "":
			p.Add(field, problem.HeaderNotToGive, why)
		case len(v) > MaxHeaderValue:
			p.Add(field, problem.TooManyBytes, len(v), MaxHeaderValue)
		case strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }):
			p.Add(field, problem.NotASCII)
		default:
			if _, err := fillSecrets(v, func(Secret) (string, error) { return "", nil }); err != nil {
				p.Put(field, problem.Of(err))
			}
		}
	}
}

func (e *AlertEmail) check(p *Problems) {
	host, port, err := net.SplitHostPort(e.Server)
	n, portErr := strconv.Atoi(port)
	_, notAddr := netip.ParseAddr(host)
	switch {
	case err != nil || portErr != nil || n < 1 || n > 65535:
		p.Add("email.server", problem.NotHostAndPort, shorten(e.Server))
	case notAddr != nil && !hostName.MatchString(host):
		p.Add("email.server", problem.NotAHost, shorten(host))
	}

	if !slices.Contains([]string{"starttls", "tls", "none"}, e.TLS) {
		p.Add("email.tls", problem.NotOneOf, shorten(e.TLS), "starttls, tls, none")
	}

	checkText(p, "email.user", e.User, 256)
	switch {
	case e.Password != "":
		checkWholeSecret(p, "email.password", e.Password)
		if e.TLS == "none" {
			p.Add("email.tls", problem.PasswordInClear)
		}
		if e.User == "" {
			p.Add("email.user", problem.PasswordOfNoOne)
		}
	case e.User != "":
		p.Add("email.password", problem.Missing.Advise("keep it in a secret, and write {{secret.NAME}}"))
	}

	if Address(e.From) == "" {
		p.Add("email.from", problem.NotMailSender, shorten(e.From))
	}

	if len(e.To) > 50 {
		p.Add("email.to", problem.TooMany, len(e.To), 50)
		return
	}

	for i, to := range e.To {
		if Address(to) == "" {
			p.Add(fmt.Sprintf("email.to[%d]", i), problem.NotMail, shorten(to))
		}
	}

	if len(e.To) == 0 {
		s := problem.Missing.Advise("give at least one address")
		if e.ToOwner {
			s = problem.Missing.Advise("give at least one address: a job may have no owner, or one that is not a mail address")
		}
		p.Add("email.to", s)
	}
}

// Ping is a URL to call when a due time has ended. A monitor at that URL raises an alarm if no call
// comes in time.
type Ping struct {
	URL     string `json:"url"`
	FailURL string `json:"fail_url,omitempty"` // called if the due time did not succeed; "": no call
}

func (s *Spec) validatePing(p *Problems) {
	if s.Ping == nil {
		return
	}

	check := func(field, text string) {
		if strings.Contains(text, opening) {
			p.Add(field, problem.URLNotFilledIn)
			return
		}
		checkURL(p, field, text, wantURL)
	}

	check("ping.url", s.Ping.URL)
	if s.Ping.FailURL != "" {
		check("ping.fail_url", s.Ping.FailURL)
	}
}
