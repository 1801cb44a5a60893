package members

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go-crontab/internal/privatedb"
)

// groupName identifies the group. Any UUID will do, as for galeraID.
const groupName = "0d5b8a7c-4e21-4c59-9a6e-6f1c2a1e3d44"

// StartGroup starts n members of a group of MySQL Group Replication. The first is the only primary.
// The server program must be MySQL's, with its plugin group_replication. more holds further
// variables of the plugin without their prefix, as "name=value". Members may be killed and come
// back only if the group is durable. It takes about a minute.
func StartGroup(ctx context.Context, n int, durable bool, more ...string) (*Cluster, error) {
	server, err := privatedb.Find()
	if err != nil {
		return nil, err
	}
	if server.MariaDB {
		return nil, fmt.Errorf("%s is MariaDB, which has no Group Replication: name a MySQL server program in %s",
			server.Path, privatedb.Binary)
	}

	c := &Cluster{
		state: `
			SELECT member_state
			FROM performance_schema.replication_group_members
			WHERE member_id = @@server_uuid`,
		want: "ONLINE",
	}
	c.joins = func(ctx context.Context, i int) error { return c.do(ctx, i, "START GROUP_REPLICATION") }
	if err := startGroup(ctx, c, n, durable, more); err != nil {
		return nil, errors.Join(fmt.Errorf("start a group: %w", err), c.Stop())
	}

	return c, nil
}

func startGroup(ctx context.Context, c *Cluster, n int, durable bool, more []string) error {
	var group []string
	for range n {
		port, err := privatedb.FreePort()
		if err != nil {
			return err
		}
		group = append(group, fmt.Sprintf("127.0.0.1:%d", port))
	}

	for i := range n {
		flags := []string{
			"--performance-schema=ON", // it shows the state of the members
			fmt.Sprint("--server-id=", i+1), "--log-bin=bin", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
			fmt.Sprintf("--sync-binlog=%d", map[bool]int{true: 1}[durable]),
			"--report-host=127.0.0.1", "--plugin-load-add=group_replication.so",
			"--loose-group_replication_group_name=" + groupName, "--loose-group_replication_start_on_boot=OFF",
			"--loose-group_replication_local_address=" + group[i],
			"--loose-group_replication_group_seeds=" + strings.Join(group, ","),
		}

		for _, m := range more {
			flags = append(flags, "--loose-group_replication_"+m)
		}

		server, err := privatedb.Start(ctx, privatedb.Options{Pool: 64, Redo: 64, Durable: durable,
			Extra: careless(durable), TCP: true,
			More: func(string, []string) ([]string, []string, error) { return flags, nil, nil }})
		if err != nil {
			return err
		}

		c.Servers = append(c.Servers, server)

		if err := c.do(ctx, i,
			"RESET BINARY LOGS AND GTIDS", // transactions from making the data folder, which differ between members
			"CHANGE REPLICATION SOURCE TO SOURCE_USER='root' FOR CHANNEL 'group_replication_recovery'",
			fmt.Sprintf("SET GLOBAL group_replication_bootstrap_group=%t", i == 0),
			"START GROUP_REPLICATION",
			"SET GLOBAL group_replication_bootstrap_group=OFF",
		); err != nil {
			return err
		}

		if err := c.Await(ctx, i); err != nil {
			return err
		}
	}

	return nil
}

// Primary returns the index of the member that takes writes, as the asked member sees it.
func (c *Cluster) Primary(ctx context.Context, asked int) (int, error) {
	port, err := c.ask(ctx, asked, `
		SELECT member_port
		FROM performance_schema.replication_group_members
		WHERE member_role = 'PRIMARY' AND member_state = 'ONLINE'`)
	if err != nil {
		return 0, err
	}

	for i, s := range c.Servers {
		if strings.HasSuffix(s.Addr(), ":"+port) {
			return i, nil
		}
	}

	return 0, fmt.Errorf("no member has port %s", port)
}
