package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go-crontab/client"
	"go-crontab/job"

	"github.com/spf13/cobra"
)

func mockCommand(c *console) *cobra.Command {
	m := &mock{console: c}
	listen, delay, secretFile := "", "", ""
	cmd := &cobra.Command{
		Use: "mock", Short: "Answer HTTP jobs and alerts, and print what arrives", Args: nothing,
		Long: `Answer HTTP jobs and alerts, and print what arrives, until you press Ctrl-C. Use it to try a job
before its real endpoint exists.

Nodes call public addresses only. For a mock on this machine start them with
--http-allow 127.0.0.1 (dev allows that).`,
		Example: "  go-crontab mock\n  go-crontab mock --status 503 --delay 2s\n" +
			"  go-crontab mock --signing-secret-file hook.secret",
		ValidArgsFunction: cobra.NoFileCompletions,
	}

	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:8620", "address to listen on, host:port")
	flags.IntVar(&m.status, "status", http.StatusOK, "status of the answers, 200 to 599")
	flags.StringVar(&m.body, "body", "ok\n", "body of the answers")
	flags.StringVar(&delay, "delay", "0s", "time before each answer, at most 1h")
	flags.StringVar(&secretFile, "signing-secret-file", "", "file with the secret that signs the requests, to check signatures")
	allowEmpty(flags, "body")

	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if m.status < 200 || m.status > 599 {
			return usageError("--status %d is not the status of an answer; want 200 to 599", m.status)
		}
		if m.delay, err = job.ParseDuration(delay); err != nil || m.delay < 0 || m.delay > time.Hour {
			return usageError("--delay %s is not a duration from 0s to 1h, such as 2s", delay)
		}
		if secretFile != "" {
			text, err := os.ReadFile(secretFile)
			if err != nil {
				return usageError("--signing-secret-file: %w", err)
			}
			m.secret = bytes.TrimRight(text, "\r\n")
		}
		return m.serve(cmd.Context(), listen)
	}

	return cmd
}

// mock is an HTTP server that prints each request.
type mock struct {
	*console
	status int
	body   string
	delay  time.Duration
	secret []byte // nil: signatures are not checked

	printing sync.Mutex // keeps the lines of one request together
	seen     int
}

func (m *mock) serve(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return usageError("--listen %s: %w", address, err)
	}

	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Handler: m, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })

	m.notef("listening on http://%s, each answer is %d; press Ctrl-C to stop\n", listener.Addr(), m.status)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// mockBody limits how many bytes of a body are read and printed.
const mockBody = 64 << 10

func (m *mock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, mockBody+1))
	if err != nil {
		m.notef("%s %s: its body broke off: %v\n", r.Method, plain(r.URL.String()), err)
		return
	}
	m.print(r, body)

	select {
	case <-r.Context().Done():
		m.notef("%s %s: the node gave up before the answer\n", r.Method, plain(r.URL.String()))
		return
	case <-time.After(m.delay):
	}

	w.WriteHeader(m.status)
	_, _ = io.WriteString(w, m.body) // an error means that the node has its answer or does not want it
}

func (m *mock) print(r *http.Request, body []byte) {
	m.printing.Lock()
	defer m.printing.Unlock()

	m.seen++
	paint := painter(colourful(m.out))
	m.printf("%s %s %s  from %s\n", paint(faint, time.Now().Format("15:04:05.000")),
		paint(bold, fmt.Sprintf("#%d %s", m.seen, r.Method)), plain(r.URL.RequestURI()), r.RemoteAddr)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		m.printf("  %s %s\n", paint(faint, name+":"), plain(strings.Join(r.Header[name], ", ")))
	}
	if m.secret != nil {
		m.printf("  %s\n", m.judged(client.CheckSignature(r, body, m.secret, time.Now()), paint))
	}

	for line := range strings.Lines(string(body[:min(len(body), mockBody)])) {
		m.printf("  | %s\n", plain(strings.TrimRight(line, "\r\n")))
	}
	if len(body) > mockBody {
		m.printf("  | … only the first 64 KiB are shown\n")
	}
}

func (m *mock) judged(err error, paint func(colour, string) string) string {
	if err != nil {
		return paint(red, plain(err.Error()))
	}
	return paint(green, "the signature is right")
}
