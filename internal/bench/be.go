package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go-crontab/execute"
	"go-crontab/node"
)

// BeNode runs a node of a bench until in ends. For each line of in, BeNode writes the node's
// vitals to out. If the orders ask for it, api serves the API; nil: the program has no API.
func BeNode(in io.Reader, out, errs io.Writer, api API) error {
	text := os.Getenv(memberVariable)
	if text == "" {
		return fmt.Errorf("%s is for go-crontab bench itself", Command)
	}

	_ = os.Unsetenv(memberVariable) // commands do not need it

	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("%s: %w", memberVariable, err)
	}

	cfg := node.Config{
		DSN: o.DSN, Name: o.Name, Expiry: o.Expiry, Slots: o.Slots, HTTPAllow: []string{"127.0.0.1"},
		Log: slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}

	if o.Executor == "noop" || o.Executor == "api" {
		cfg.Executor = execute.Noop{}
	}

	n, err := node.New(cfg)
	if err != nil {
		return err
	}
	if cfg.Executor == nil {
		n.Handle("bench", func(context.Context, node.Attempt) error { return nil })
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()

	door := vitals{}
	if o.Executor == "api" {
		if door.API, door.Token, err = serve(ctx, n, api); err != nil {
			return err
		}
	}

	// Answer questions until the bench closes our input.
	asked := bufio.NewScanner(in)
	for asked.Scan() {
		v := vitals{CPU: cpu(), RSS: rss(), Ready: n.Ready() == nil, API: door.API, Token: door.Token}
		if guard := n.Status().Guard; guard != 0 {
			v.Guard = guardVitals{CPU: cpuOf(guard), Own: statusMB(strconv.Itoa(guard), "RssAnon:")}
		}

		line, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
			return err
		}
	}

	stop()
	return <-ended
}

// serve makes a node serve its API on this machine.
func serve(ctx context.Context, n *node.Node, api API) (addr, token string, err error) {
	if api == nil {
		return "", "", errors.New("this program has no API")
	}

	for n.Ready() != nil { // until the node is ready, it has no database for the API
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return "", "", err
		}
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}

	token, err = api(ctx, n, l)
	return l.Addr().String(), token, err
}

// cpu returns the CPU time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rss returns the resident memory of this process in MB, or 0 without /proc.
func rss() float64 { return residentMB("self") }

func residentMB(pid string) float64 { return statusMB(pid, "VmRSS:") }

func statusMB(pid, name string) float64 {
	text, _ := os.ReadFile("/proc/" + pid + "/status")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			kb, _ := strconv.ParseFloat(f[1], 64)
			return kb / 1024
		}
	}
	return 0
}

// cpuOf returns the CPU time that another process has used, or 0 without /proc.
func cpuOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}

	afterName := strings.LastIndex(string(text), ")") + 1 // the name may contain spaces and brackets
	f := strings.Fields(string(text)[afterName:])
	if len(f) < 13 {
		return 0
	}

	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * (time.Second / 100) // ticks are 10 ms on all Linux systems that Go supports
}
