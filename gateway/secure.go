package gateway

import (
	"os"
	"path/filepath"

	"herald/gateway/config"
	"herald/tools/spill"
)

// Credentials are written in these places: the database (sessions of the platforms), .env and config.yaml (keys), and what
// approvals change in config.yaml. Each of them narrows the directory of its file to the owner by spill.SecureParentDir,
// which leaves three kinds of directory as they are: "/", a top-level directory, and the tree that Herald is installed in
// with everything below it. The files themselves are the owner's alone in any case.

// secureHome narrows the directory of the credentials of the profile.
func (g *Gateway) secureHome() {
	file := g.opt.Paths.EnvFile // .env, config.yaml and the database are in one directory
	reason := spill.SecureParentDir(file, installDir())
	if info, err := os.Stat(filepath.Dir(file)); reason != "" && err == nil && info.Mode().Perm()&0o077 != 0 {
		g.log.Warn().Str("because", reason).Msg("the directory of the credentials is left open for others; the files in it are not")
	}
}

// EditConfig is config.Edit of a file that may hold credentials: its directory is narrowed too.
func EditConfig(file string, change func(text []byte) ([]byte, error)) error {
	if err := config.Edit(file, change); err != nil {
		return err
	}
	_ = spill.SecureParentDir(file, installDir()) // the next start says why, if it did not
	return nil
}

// installDir is the tree that Herald is installed in: the directory of the program, "" where that is just the user's home.
func installDir() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return ""
	}
	dir := filepath.Dir(program)
	if home, err := os.UserHomeDir(); err == nil {
		if real, err := filepath.EvalSymlinks(home); err == nil && real == dir {
			return ""
		}
	}
	return dir
}
