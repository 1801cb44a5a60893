package node_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"go-crontab/job"
	"go-crontab/node"
)

// A program with two handlers. Each due time of their jobs is run by one of its processes.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dsn := os.Getenv("GOCRONTAB_DSN")
	if err := node.Migrate(ctx, dsn); err != nil {
		log.Fatal(err)
	}

	n, err := node.New(node.Config{DSN: dsn, Labels: map[string]string{"zone": "a"}, HandlersOnly: true})
	if err != nil {
		log.Fatal(err)
	}

	n.Handle("invoice", func(ctx context.Context, a node.Attempt) error {
		fmt.Fprintf(a.Out, "invoices due %s\n", a.Due) // kept as the run's output
		return ctx.Err()
	})

	n.Handle("mail/send", node.JSON(func(ctx context.Context, to struct{ Address string }, a node.Attempt) error {
		return send(ctx, to.Address, a.Launch.String()) // the launch is an idempotency key
	}))
	if err := n.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func send(context.Context, string, string) error { return nil }

// Each process states at its start which jobs must exist; matching jobs are not touched.
func ExampleJobs_Ensure() {
	var n *node.Node // a running node
	_, err := n.Jobs().Ensure(context.Background(), job.Spec{
		App: "shop", Name: "invoices", Schedule: "0 6 1 * *", Timezone: "Europe/Berlin", Handler: "invoice",
		Owner: "billing", Retry: job.Retry{Attempts: 3, Backoff: job.Duration(time.Minute)},
	})

	var wrong job.Problems
	if errors.As(err, &wrong) {
		for _, p := range wrong {
			fmt.Println(p.Field, p.Message)
		}
	}
}

// A reminder in three hours, which survives restarts. If all processes are down then, it fires when
// one is back.
func ExampleJobs_Create() {
	var n *node.Node // a running node
	at := n.Now().Add(3 * time.Hour)
	_, err := n.Jobs().Create(context.Background(), job.Spec{
		App: "shop", Name: "remind order 77", At: &at, Handler: "mail/send",
		Payload: `{"Address": "ann@example.com"}`, Owner: "ann",
	})
	if errors.Is(err, node.ErrExists) {
		fmt.Println("ann is reminded of it already")
	}
}

// The jobs of an owner.
func ExampleJobs_List() {
	var n *node.Node
	for j, err := range n.Jobs().List(context.Background(), node.JobQuery{Owner: "ann"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(j.Spec.Name, j.NextDue)
	}
}
