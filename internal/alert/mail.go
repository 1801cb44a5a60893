package alert

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go-crontab/job"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// mail sends a message by SMTP. If the server finally refuses the owner of the job as a recipient,
// the recipients of the channel get the message.
func (o *Outside) mail(
	ctx context.Context, l *letter, m *job.AlertMessage, values map[job.Secret]string,
) verdict {
	e := l.channel.Email
	if e == nil {
		return verdict{err: errors.New("the channel has no mail server"), final: true}
	}
	if l.Target == "" {
		return o.mailTo(ctx, l, m, values, e.To)
	}

	v := o.mailTo(ctx, l, m, values, []string{l.Target})
	if !v.final {
		return v
	}
	refused := v.err
	if v = o.mailTo(ctx, l, m, values, e.To); v.err == nil {
		v.said += fmt.Sprintf(", instead of the owner: %v", refused)
	}
	return v
}

// mailTo sends a message to each recipient that the server accepts.
func (o *Outside) mailTo(
	ctx context.Context, l *letter, m *job.AlertMessage, values map[job.Secret]string, to []string,
) verdict {
	e := l.channel.Email
	host, port, err := net.SplitHostPort(e.Server)
	if err != nil {
		return verdict{err: err, final: true}
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return verdict{err: err, final: true}
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
	// The id is the same in each try, so a mail reader can show the mail only once.
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

	conn, err := client.DialToSMTPClientWithContext(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded):
		return verdict{err: errLateMail}
	case strings.Contains(err.Error(), "does not support STARTTLS"):
		return verdict{err: fmt.Errorf("%s does not offer STARTTLS; set tls of the channel to tls, which many servers "+
			"expect on port 465, or to none", e.Server)}
	default:
		return verdict{err: err}
	}
	defer func() { _ = client.CloseWithSMTPClient(conn) }() // by then the server has accepted or refused the message

	refused, err := handOver(conn, msg)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return verdict{err: errLateMail}
		}
		return verdict{err: err, final: refusedForGood(err)}
	}

	recipients := "1 recipient"
	if n := len(to) - len(refused); n > 1 {
		recipients = fmt.Sprintf("%d recipients", n)
	}
	said := fmt.Sprintf("%s accepted it for %s", e.Server, recipients)
	if len(refused) > 0 {
		said += "; " + errors.Join(refused...).Error()
	}
	return verdict{said: said}
}

var errLateMail = errors.New("the mail server did not respond in time")

// handOver hands a message to a mail server for the recipients that the server accepts. It returns
// the refusals of the other recipients. If the server accepts no recipient, the error is one of
// the refusals, if possible a temporary one.
func handOver(conn *smtp.Client, msg *mail.Msg) (refused []error, err error) {
	from, err := msg.GetSender(false)
	if err != nil {
		return nil, err
	}
	to, err := msg.GetRecipients()
	if err != nil {
		return nil, err
	}

	if err := conn.Mail(from); err != nil {
		return nil, fmt.Errorf("sender %s: %w", from, err)
	}
	for _, one := range to {
		if err := conn.Rcpt(one); err != nil {
			refused = append(refused, fmt.Errorf("recipient %s: %w", one, err))
		}
	}
	if len(refused) == len(to) {
		forNow := slices.IndexFunc(refused, func(err error) bool { return !refusedForGood(err) })
		return nil, refused[max(0, forNow)]
	}

	w, err := conn.Data()
	if err != nil {
		return nil, fmt.Errorf("message: %w", err)
	}
	if _, err := msg.WriteTo(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("message: %w", err)
	}
	return refused, nil
}

// refusedForGood reports whether a mail server would give the same answer to another try.
func refusedForGood(err error) bool {
	var answer *textproto.Error
	return errors.As(err, &answer) && answer.Code >= 500
}

// mailDial returns a function that connects to a mail server, if the node may call that server.
// The connection is closed when the context sending ends. The library obeys a context only while
// it connects, so without this it would wait for a silent server.
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
