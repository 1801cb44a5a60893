package session

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"go-crontab/sql"

	"github.com/google/uuid"
)

// zoneFolders are where package time looks for the time zone data of the machine.
var zoneFolders = []string{
	os.Getenv("ZONEINFO"), "/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo",
}

// ZonesFrom says where the time zone data of this process is from, in a few words: the release of
// the machine's, such as 2025b, if that says which it is.
func ZonesFrom() string { return zonesFrom(zoneFolders) }

func zonesFrom(folders []string) string {
	for _, dir := range folders {
		if _, err := os.Stat(dir); dir == "" || err != nil {
			continue
		}
		for file, before := range map[string]string{"tzdata.zi": "# version ", "+VERSION": ""} {
			if release, ok := strings.CutPrefix(firstLine(filepath.Join(dir, file)), before); ok && release != "" {
				return release
			}
		}
		return "the machine's"
	}

	return "that of " + runtime.Version()
}

func firstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan()
	return strings.TrimSpace(lines.Text())
}

// The setting zones says what time zone data all jobs are planned by: its fingerprint, see
// job.ZoneData, or, from when a node joined with other data until all nodes have the same and all
// jobs were looked at, "?" and the session of the last such node.

// joinZones notes that a session begins whose node computes with some data, if that is not what all
// jobs are planned by: from now on they may be planned by this one. It belongs into the transaction
// that inserts the session.
func joinZones(tx *sql.Tx, session uuid.UUID, zones string) error {
	if zones == "" {
		return nil
	}
	_, err := tx.Exec("note time zone data", `
		INSERT INTO setting (name, value)
		VALUES ('zones', ?)
		ON DUPLICATE KEY UPDATE value = IF(value = ?, value, VALUES(value))`,
		"?"+session.String(), zones)
	return err
}
