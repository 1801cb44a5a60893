package cli

import (
	"os"
	"path/filepath"
)

// appDir returns go-crontab's folder below the user's folder that the variable names, or below the
// usual one. For root it is below the system folder, if one is given.
func appDir(variable, usual, system, name string) (string, error) {
	if system != "" && os.Geteuid() == 0 {
		return filepath.Join(system, name), nil
	}
	if base := os.Getenv(variable); filepath.IsAbs(base) {
		return filepath.Join(base, "go-crontab", name), nil
	}

	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, usual, "go-crontab", name), nil
}
