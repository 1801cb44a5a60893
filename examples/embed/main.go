// Command embed is a program that embeds a node. Its jobs are Go functions whose schedules are in
// MySQL. Each due time runs in one of the program's processes. Start several:
//
//	GOCRONTAB_DSN='crontab:secret@tcp(db:3306)/crontab' go run ./examples/embed
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go-crontab/api"
	"go-crontab/job"
	"go-crontab/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	host, _ := os.Hostname()
	cfg := node.Config{
		DSN: os.Getenv("GOCRONTAB_DSN"), Name: fmt.Sprintf("%s-%d", host, os.Getpid()), HandlersOnly: true,
	}
	if err := run(ctx, cfg, "127.0.0.1:0", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// reminder is the payload of jobs with the handler remind.
type reminder struct {
	Customer string `json:"customer"`
	Text     string `json:"text"`
}

// run is the program. It ends after ctx does, once its work is finished.
func run(ctx context.Context, cfg node.Config, listen string, out io.Writer) error {
	if err := node.Migrate(ctx, cfg.DSN); err != nil {
		return err
	}

	n, err := node.New(cfg)
	if err != nil {
		return err
	}

	// Handlers do the work. A job with a handler runs only on nodes that have it.
	n.Handle("remind", node.JSON(func(_ context.Context, r reminder, a node.Attempt) error {
		fmt.Fprintf(out, "to %s: %s\n", r.Customer, r.Text)
		fmt.Fprintf(a.Out, "sent, attempt %d\n", a.Attempt) // the run's output, shown by go-crontab run logs
		return nil
	}))

	n.Handle("clean-up", func(ctx context.Context, a node.Attempt) error {
		// Launch differs for each attempt. Use it as an idempotency key in calls to other services.
		fmt.Fprintf(out, "clean-up due %s, launch %s\n", a.Due.Format(time.TimeOnly), a.Launch)
		return nil
	})

	// The cluster's HTTP API, for people and for the go-crontab command. It is optional.
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}

	served := make(chan error, 1)
	go func() { served <- handler(n, l).Serve(ctx, l) }()

	running := make(chan error, 1)
	go func() { running <- n.Run(ctx) }()
	if err := addJobs(ctx, n); err != nil && ctx.Err() == nil {
		return err
	}

	fmt.Fprintf(out, "serving http://%s\n", l.Addr())
	return errors.Join(<-running, <-served)
}

// addJobs adds the jobs that this program needs. Every process calls it at its start; only the
// first call writes.
func addJobs(ctx context.Context, n *node.Node) error {
	_, err := n.Jobs().Ensure(ctx, job.Spec{
		App: "shop", Name: "clean-up", Handler: "clean-up", Owner: "shop",
		Every: job.Duration(2 * time.Second), Timeout: job.Duration(time.Minute),
	})
	if err != nil {
		return err
	}

	// One job per customer, due once. If no node is alive at that time, the run still starts within
	// an hour (misfire.max_age).
	for _, customer := range []string{"ann", "bob"} {
		at := n.Now().Add(3 * time.Second)
		_, err := n.Jobs().Create(ctx, job.Spec{
			App: "shop", Name: "remind " + customer, Handler: "remind", Owner: customer, At: &at,
			Payload: fmt.Sprintf(`{"customer": %q, "text": "your cart is waiting"}`, customer),
		})
		if err != nil && !errors.Is(err, node.ErrExists) { // another process or an earlier start has added it
			return err
		}
	}

	for j, err := range n.Jobs().List(ctx, node.JobQuery{Owner: "ann"}) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(j.Spec.Name, "remind ") {
			return fmt.Errorf("job %s/%s belongs to ann", j.Spec.App, j.Spec.Name)
		}
	}

	return nil
}

// handler returns the API of the node.
func handler(n *node.Node, l net.Listener) *api.Server {
	return api.New(api.Config{
		DB: n.Reads(), Now: n.Now, Ready: n.Ready, Node: n.Name(), Listen: l.Addr().String(),
		Editor: api.EditorOf(n.Editor), Alerts: n.Alerts(),
	})
}
