package cli

import (
	"os"
	"path/filepath"
)

// appDir returns go-crontab's folder inside the folder that the variable names. If the variable
// holds no absolute path, it lies inside the usual folder of the user. For root it lies inside the
// system folder, if one is given.
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
