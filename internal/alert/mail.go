package alert

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"go-crontab/job"

	"github.com/wneessen/go-mail"
)

// mail sends a message by SMTP.
func (o *Outside) mail(
	ctx context.Context, l *letter, m *job.AlertMessage, values map[job.Secret]string,
) verdict {
	e := l.channel.Email
	if e == nil {
		return verdict{err: errors.New("the channel has no mail server"), final: true}
	}
	host, port, err := net.SplitHostPort(e.Server)
	if err != nil {
		return verdict{err: err, final: true}
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return verdict{err: err, final: true}
	}

	to := e.To
	if l.Target != "" {
		to = []string{l.Target}
	}

	// Compose the message.
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	key := hex.EncodeToString(l.Key[:])
	for _, err := range []error{msg.From(e.From), msg.To(to...)} {
		if err != nil {
			return verdict{err: err, final: true}
		}
	}

	msg.Subject(cutText(m.Title, 300))
	// The id is the same in each try, so that a mail reader can show the mail once.
	msg.SetMessageIDWithValue(key + "@go-crontab")
	msg.SetDate()
	msg.SetGenHeader("X-Gocrontab-Key", key)
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(mail.TypeTextPlain, m.Text)

	timeout := 10 * time.Second
	if end, ok := ctx.Deadline(); ok {
		timeout = max(time.Second, time.Until(end))
	}
	options := []mail.Option{
		mail.WithPort(number),
		mail.WithTimeout(timeout),
		mail.WithDialContextFunc(o.mailDial(ctx, e, host)),
		mail.WithTLSConfig(&tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}),
		mail.WithoutNoop(),
	}
	switch e.TLS {
	case "none", "tls": // with "tls", mailDial has secured the connection
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if name, is := job.WholeSecret(e.Password); is && e.User != "" {
		how := mail.SMTPAuthAutoDiscover
		if e.TLS == "tls" {
			how = mail.SMTPAuthPlainNoEnc // the library does not see that the connection is encrypted
		}
		options = append(options, mail.WithUsername(e.User), mail.WithPassword(values[name]), mail.WithSMTPAuth(how))
	}

	client, err := mail.NewClient(host, options...)
	if err != nil {
		return verdict{err: err, final: true}
	}

	if err := client.DialAndSendWithContext(ctx, msg); err != nil {
		if ctx.Err() != nil {
			return verdict{err: errors.New("the mail server did not respond in time")}
		}
		var refused *mail.SendError
		final := errors.As(err, &refused) && !refused.IsTemp() && refused.ErrorCode() >= 500
		if refused == nil && strings.Contains(err.Error(), "does not support STARTTLS") {
			err = fmt.Errorf("%s does not offer STARTTLS; set tls of the channel to tls, which many servers expect on "+
				"port 465, or to none", e.Server)
		}
		return verdict{err: err, final: final}
	}

	recipients := "1 recipient"
	if len(to) > 1 {
		recipients = fmt.Sprintf("%d recipients", len(to))
	}
	return verdict{said: fmt.Sprintf("%s accepted it for %s", e.Server, recipients)}
}

// mailDial returns a function that connects to a mail server, if the node may call it. The
// connection is closed when sending ends: the library heeds its context only while connecting, and
// would then wait for a silent server.
func (o *Outside) mailDial(sending context.Context, e *job.AlertEmail, host string) mail.DialContextFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := o.cfg.Dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}

		context.AfterFunc(sending, func() { _ = conn.Close() })
		if e.TLS != "tls" {
			return conn, nil
		}
		secured := tls.Client(conn, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12})
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return secured, nil
	}
}
