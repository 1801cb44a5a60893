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

// zoneFolders are the folders in which package time looks for the machine's time zone data.
var zoneFolders = []string{
	os.Getenv("ZONEINFO"), "/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo",
}

// ZonesFrom describes the source of this process's time zone data. If it is known, the release of
// the machine's data is included, such as 2025b.
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

// The setting `zones` is the fingerprint of the time zone data with which all jobs were planned
// (see job.ZoneData). When a node joins with different data, the setting becomes "?" followed by
// that node's session. It keeps this value until all nodes have the same data and all jobs have
// been checked with these.

// joinZones marks the setting if a new session brings different time zone data, because jobs may
// be planned with these data from now on. Call it in the transaction that inserts the session.
func joinZones(tx *sql.Tx, session uuid.UUID, zones string) error {
	if zones == "" {
		return nil
	}
	_, err := tx.Exec("record time zone data", `
		INSERT INTO setting (name, value)
		VALUES ('zones', ?)
		ON DUPLICATE KEY UPDATE value = IF(value = ?, value, VALUES(value))`,
		"?"+session.String(), zones)
	return err
}
