package workspace

import (
	"os"
	"path/filepath"
	"strings"
)

// Protected reports files that never leave through a chat: what the home keeps beside the caches and the
// workspace, and the usual places of credentials.
func (s Settings) Protected(path string) bool {
	home := s.Paths.Home
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	inside := func(dir string) bool {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		rel, err := filepath.Rel(dir, path)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
	}
	if inside(home) {
		return !inside(s.Paths.Cache) && !inside(s.Config.WorkDir(s.Paths))
	}
	user, err := os.UserHomeDir()
	if err == nil {
		for _, dir := range []string{".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".config/gh", ".config/gcloud", ".netrc", ".pgpass",
			".npmrc", ".pypirc", ".git-credentials", ".herald", ".hermes"} {
			if inside(filepath.Join(user, dir)) {
				return true
			}
		}
	}
	base := filepath.Base(path)
	return strings.HasPrefix(path, "/etc/") || strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/") || base == ".env" ||
		(strings.HasPrefix(base, ".env.") && base != ".env.example")
}
