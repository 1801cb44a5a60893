package node

import (
	"fmt"

	"go-crontab/execute"
)

// newExecutor makes the executor, with one part per kind of job. stored are the cluster's secrets.
func newExecutor(cfg *Config, stored execute.Stored) (execute.Executor, error) {
	if cfg.HandlersOnly {
		// A selector that names the label of a handler may still place a command here. Without an
		// executor, the command cannot run.
		return &execute.Kinds{Handler: cfg.Handlers}, nil
	}

	shell, err := execute.NewShell(execute.Config{
		RunAs:    cfg.RunAs,
		Allow:    cfg.RunAsAllow,
		NewPrivs: cfg.NewPrivs,
		Cgroup:   cfg.Cgroup,
	})
	if err != nil {
		return nil, err
	}

	grants, err := execute.ParseGrants(cfg.SecretGrants)
	if err != nil {
		return nil, fmt.Errorf("--grant-secret %w", err)
	}

	for _, name := range grants.Unused() {
		cfg.Log.Warn("no job may use this secret of the node, because no --grant-secret names it",
			"variable", name)
	}

	secrets := execute.NodeSecrets{Dir: cfg.SecretsDir, Grants: grants}
	requests, err := execute.NewHTTP(execute.HTTPConfig{Allow: cfg.HTTPAllow, Secrets: secrets})
	if err != nil {
		return nil, err
	}
	return &execute.Kinds{Command: shell, HTTP: requests, Handler: cfg.Handlers, Stored: stored}, nil
}
