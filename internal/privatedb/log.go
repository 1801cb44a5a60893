package privatedb

import (
	"bytes"
	"io"
	"os"
)

// logMax is the size in bytes above which a start renames the log to server.log.old.
const logMax = 4 << 20

func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logMax {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
}

// tail returns lines of the log for an error text. It reads the last 64 KB that p and later
// programs wrote. It returns the last 20 lines with "ERROR", or the last 20 lines if no line has
// this word.
func (db *DB) tail(p *process) string {
	f, err := os.Open(db.logPath())
	if err != nil {
		return "" // Stop may have removed the folder
	}
	defer f.Close()

	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}

	start := max(p.logStart, size-64<<10)
	b, err := io.ReadAll(io.NewSectionReader(f, start, size-start))
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return ""
	}

	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	var bad [][]byte
	for _, line := range lines {
		if bytes.Contains(line, []byte("ERROR")) {
			bad = append(bad, line)
		}
	}

	if len(bad) > 0 {
		lines = bad
	}
	return "; from " + db.logPath() + ":\n" + string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}
