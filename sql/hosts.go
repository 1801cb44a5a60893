package sql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// hostStagger is how long to wait for one server of a DSN before the next server is tried in
// parallel. A dead server refuses at once. A server that is cut off says nothing, and waiting for
// it would cost the lease.
const hostStagger = 500 * time.Millisecond

// splitHosts splits a DSN whose address lists several servers, as in
// user:password@tcp(a:3306,b:3306)/schema, into one DSN per server.
func splitHosts(dsn string) ([]string, error) {
	slash := strings.LastIndexByte(dsn, '/')
	if slash < 0 {
		return []string{dsn}, nil
	}

	begin := strings.LastIndexByte(dsn[:slash], '@') + 1
	end := slash - 1
	network, list, ok := strings.Cut(dsn[begin:slash], "(")
	if !ok || end < begin || dsn[end] != ')' || !strings.HasPrefix(network, "tcp") || !strings.Contains(list, ",") {
		return []string{dsn}, nil
	}

	var each []string
	for host := range strings.SplitSeq(strings.TrimSuffix(list, ")"), ",") {
		host = strings.TrimSpace(host)
		if host == "" {
			return nil, errors.New(
				"an address in the list is empty; write it as user:password@tcp(host1:3306,host2:3306)/schema")
		}
		each = append(each, dsn[:begin]+network+"("+host+dsn[end:])
	}

	return each, nil
}

// hosts connects to one of several servers that hold the same data. It prefers the server of the
// last connection. If that fails, it takes the next server that is reachable and writable. It does
// not go back to a server just because that server is reachable again.
type hosts struct {
	each  []driver.Connector
	names []string     // their addresses
	last  atomic.Int32 // index of the server of the last connection
	fresh bool         // reads must show earlier writes made through other members
	set   map[string]string
}

func newHosts(configs []*mysql.Config, fresh bool) (*hosts, error) {
	h := &hosts{fresh: fresh, set: configs[0].Params}
	for _, c := range configs {
		one, err := mysql.NewConnector(c)
		if err != nil {
			return nil, err
		}
		h.each, h.names = append(h.each, one), append(h.names, c.Addr)
	}
	return h, nil
}

func (h *hosts) Driver() driver.Driver { return h.each[0].Driver() }

func (h *hosts) Connect(ctx context.Context) (driver.Conn, error) {
	if len(h.each) == 1 {
		link, err := h.each[0].Connect(ctx)
		if err != nil {
			return nil, err
		}
		return h.ready(ctx, link)
	}

	// Start the first attempt now and one more after each failure or hostStagger.
	type answer struct {
		host int
		link driver.Conn
		err  error
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers := make(chan answer, len(h.each))
	first, tried, failed := int(h.last.Load()), 0, 0
	try := func() {
		host := (first + tried) % len(h.each)
		tried++
		go func() {
			link, err := connectToWriter(ctx, h.each[host])
			answers <- answer{host, link, err}
		}()
	}

	// abandon closes the connections of attempts that succeed too late. The timeouts of a
	// connection limit how long it waits.
	abandon := func(n int) {
		go func() {
			for range n {
				if a := <-answers; a.link != nil {
					a.link.Close()
				}
			}
		}()
	}

	var errs []error

	stagger := time.NewTicker(hostStagger)
	defer stagger.Stop()
	for try(); ; {
		select {
		case a := <-answers:
			if a.err == nil {
				h.last.Store(int32(a.host))
				abandon(tried - failed - 1)
				return h.ready(ctx, a.link)
			}

			errs = append(errs, fmt.Errorf("%s: %w", h.names[a.host], a.err))
			if failed++; failed == len(h.each) {
				return nil, errors.Join(errs...)
			}
			if tried < len(h.each) {
				try()
			}
		case <-stagger.C:
			if tried < len(h.each) {
				try()
			}
		case <-ctx.Done():
			abandon(tried - failed)
			return nil, context.Cause(ctx)
		}
	}
}

var errNoWriter = errors.New("it is read-only")

// connectToWriter connects to a server if the server is writable. A replica is not writable, nor is
// a Galera server outside the majority of its cluster.
func connectToWriter(ctx context.Context, c driver.Connector) (driver.Conn, error) {
	link, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}

	now, err := shown(ctx, link, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'wsrep_on')")
	if err == nil && !IsOff(now["read_only"]) {
		err = errNoWriter
	}

	if err == nil && now["wsrep_on"] == "ON" {
		if now, err = shown(ctx, link, "SHOW GLOBAL STATUS LIKE 'wsrep_ready'"); err == nil &&
			now["wsrep_ready"] != "ON" {
			err = errNotReady
		}
	}

	if err != nil {
		link.Close()
		return nil, err
	}

	return link, nil
}

var errNotReady = errors.New("it is cut off from the majority of its Galera cluster, or has not caught up with it")

// shown returns the names and values in the answer to a SHOW statement.
func shown(ctx context.Context, link driver.Conn, show string) (map[string]string, error) {
	rows, err := link.(driver.QueryerContext).QueryContext(ctx, show, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	out := map[string]string{}
	for row := make([]driver.Value, 2); ; {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		}
		out[fmt.Sprintf("%s", row[0])] = fmt.Sprintf("%s", row[1])
	}
}

// freshness are the settings for reads on a multi-writer cluster: a read shows all earlier writes
// through any member. Nodes that join need this. So do users who change something on one node and
// then ask another. Claims and starts do not need it: they write the rows on which they depend.
var freshness = []struct{ variable, value, set, to string }{
	{"wsrep_on", "ON", "wsrep_sync_wait", "1"},
	// Old versions have this default. With it, a new primary answers reads before it has applied
	// everything that the old primary committed.
	{"group_replication_consistency", "EVENTUAL", "group_replication_consistency", "'BEFORE_ON_PRIMARY_FAILOVER'"},
	{"group_replication_single_primary_mode", "OFF", "group_replication_consistency", "'BEFORE'"},
}

// ready prepares a connection for use.
func (h *hosts) ready(ctx context.Context, link driver.Conn) (driver.Conn, error) {
	if h.fresh {
		if err := h.askForFresh(ctx, link); err != nil {
			link.Close()
			return nil, fmt.Errorf("ask for fresh reads: %w", err)
		}
	}

	if able, ok := link.(driverConn); ok {
		return &watched{driverConn: able}, nil
	}
	return link, nil
}

func (h *hosts) askForFresh(ctx context.Context, link driver.Conn) error {
	now, err := shown(ctx, link, "SHOW SESSION VARIABLES WHERE Variable_name IN"+
		" ('wsrep_on', 'group_replication_consistency', 'group_replication_single_primary_mode')")
	for _, f := range freshness {
		if _, said := h.set[f.set]; err == nil && !said && now[f.variable] == f.value {
			_, err = link.(driver.ExecerContext).ExecContext(ctx, "SET SESSION "+f.set+" = "+f.to, nil)
		}
	}
	return err
}

// watched is a connection that is dropped once its server says that it is read-only or cut off from
// its cluster. A new connection may reach a better server.
type watched struct {
	driverConn
	cut bool
}

func (w *watched) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r, err := w.driverConn.ExecContext(ctx, query, args)
	return r, w.heard(err)
}

func (w *watched) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r, err := w.driverConn.QueryContext(ctx, query, args)
	return r, w.heard(err)
}

func (w *watched) heard(err error) error {
	switch {
	case number(err) == notReady:
		w.cut = true
	case isReadOnly(err):
		w.cut = true
		return &readOnlyError{err}
	}
	return err
}

// IsValid reports whether the connection may be reused.
func (w *watched) IsValid() bool { return !w.cut && w.driverConn.IsValid() }
