package alert

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go-crontab/job"
)

// textMost is the maximum length of a message's text in each chat, in bytes.
var textMost = map[job.ChannelType]int{
	job.ChannelSlack: 12_000, job.ChannelFeishu: 12_000, job.ChannelDingTalk: 12_000, job.ChannelWeCom: 2000,
}

const pagerMost = 1000 // maximum length of a summary for PagerDuty, in bytes

// mention matches the start of a mention of people in a text for Feishu. Messages repeat names
// that users chose freely, but must not mention anybody.
var mention = regexp.MustCompile(`(?i)<(/?at\b)`)

// everybody matches words that mention many people in chats like Slack. Escaping these words does
// not help.
var everybody = regexp.MustCompile(`(?i)@(all|channel|here|everyone)\b`)

// chat returns the body of a message for a chat or for PagerDuty, and the address to send it to.
func chat(
	l *letter, m *job.AlertMessage, address string, values map[job.Secret]string, now time.Time,
) (body []byte, target string, err error) {
	secret := ""
	if name, is := job.WholeSecret(l.channel.Sign); is {
		secret = values[name]
	}

	text := m.Title + "\n" + m.Text
	if strings.HasPrefix(m.Text, m.Title) {
		text = m.Text
	}
	if most, bounded := textMost[l.channel.Type]; bounded {
		text = cutText(text, most)
	}

	var v any
	switch l.channel.Type {
	case job.ChannelSlack:
		escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
		v = map[string]any{"text": everybody.ReplaceAllString(escape.Replace(text), "@\u200b$1")}
	case job.ChannelFeishu:
		safe := mention.ReplaceAllString(text, "＜$1")
		o := map[string]any{"msg_type": "text", "content": map[string]string{"text": safe}}
		if secret != "" {
			at := strconv.FormatInt(now.Unix(), 10)
			o["timestamp"], o["sign"] = at, hmacText(at+"\n"+secret, "")
		}
		v = o
	case job.ChannelDingTalk:
		v = map[string]any{"msgtype": "text", "text": map[string]string{"content": text}}
		if secret != "" {
			u, err := url.Parse(address)
			if err != nil {
				return nil, "", errors.New("the url cannot be parsed")
			}
			at := strconv.FormatInt(now.UnixMilli(), 10)
			q := u.Query()
			q.Set("timestamp", at)
			q.Set("sign", hmacText(secret, at+"\n"+secret))
			u.RawQuery = q.Encode()
			address = u.String()
		}
	case job.ChannelWeCom:
		v = map[string]any{"msgtype": "text", "text": map[string]string{"content": text}}
	case job.ChannelPagerDuty:
		name, _ := job.WholeSecret(l.channel.RoutingKey)
		v = pagerEvent(m, values[name])
	default:
		return nil, "", fmt.Errorf("this version does not support channels of type %q", l.channel.Type)
	}

	body, err = json.Marshal(v)
	return body, address, err
}

func hmacText(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// pagerEvent returns an event for PagerDuty's API v2. The alert and the time of its first firing
// identify the incident.
func pagerEvent(m *job.AlertMessage, key string) map[string]any {
	it := job.AlertItem{What: "test"}
	if len(m.Items) > 0 {
		it = m.Items[0]
	}

	action, dedup := "trigger", "go-crontab-"+it.AlertID+"-"+it.Since
	switch it.What {
	case "resolved":
		action = "resolve"
	case "test":
		dedup = "go-crontab-test-" + m.Key
	}

	source := it.Node
	if it.Job != "" {
		source = it.App + "/" + it.Job
	}
	if source == "" {
		source = "go-crontab"
	}

	event := map[string]any{
		"routing_key": key, "event_action": action, "dedup_key": dedup, "client": "go-crontab",
		"payload": map[string]any{
			"summary":        cutText(m.Title, pagerMost),
			"source":         source,
			"severity":       it.Severity,
			"timestamp":      it.At,
			"component":      it.App,
			"group":          m.Rule,
			"class":          string(it.Event),
			"custom_details": it,
		},
	}
	if it.URL != "" {
		event["client_url"] = it.URL
		event["links"] = []map[string]string{{"href": it.URL, "text": "Open in go-crontab"}}
	}
	return event
}

// refusedBy returns why a chat refused a message, although it answered 2xx. It returns "" if the
// chat accepted the message.
func refusedBy(t job.ChannelType, answer []byte) string {
	var said struct {
		Code    *int   `json:"code"`
		Msg     string `json:"msg"`
		ErrCode *int   `json:"errcode"`
		ErrMsg  string `json:"errmsg"`
	}

	switch t {
	case job.ChannelFeishu, job.ChannelDingTalk, job.ChannelWeCom:
	default:
		return ""
	}
	if json.Unmarshal(answer, &said) != nil {
		return ""
	}

	switch {
	case said.Code != nil && *said.Code != 0:
		return fmt.Sprintf("the server answered code %d: %s", *said.Code, said.Msg)
	case said.ErrCode != nil && *said.ErrCode != 0:
		return fmt.Sprintf("the server answered errcode %d: %s", *said.ErrCode, said.ErrMsg)
	}
	return ""
}
