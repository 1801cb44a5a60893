package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version string

// versionInfo is the output of the version command.
type versionInfo struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// readVersion returns the version that the linker has set. Otherwise it returns the revision that
// Go recorded.
func readVersion() versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if v.Version != "" || !ok {
		return v
	}

	v.Version = info.Main.Version
	var revision, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}

	if (v.Version == "" || v.Version == "(devel)") && revision != "" {
		v.Version = revision + dirty
	}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "unknown"
	}

	return v
}

func versionCommand(c *console) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: nothing, Example: "  go-crontab version -o json",
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			return out.object(c, v, v.Version, func() error {
				_, err := fmt.Fprintf(c.out, "go-crontab %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
				return err
			})
		},
	}

	out.flags(cmd)
	return cmd
}
