package mounts

import "strings"

// secretNames are files and directories that hold credentials wherever they are, in lower case: some file systems don't
// tell the cases apart.
var secretNames = []string{".ssh", ".aws", ".gnupg", ".netrc", ".pgpass", ".git-credentials", ".env"}

// secretHome are those that hold credentials in a home directory.
var secretHome = []string{".kube", ".docker", ".azure", ".npmrc", ".pypirc", ".config/gh", ".config/gcloud", ".config/herald", ".config/hermes"}

// secretPrefixes begin the names of profiles' homes in a home directory.
var secretPrefixes = []string{".herald", ".hermes"}

// credentials reports whether a clean path of a container may hold credentials. In a cache of Herald's own no path does.
func (m Table) credentials(one Mount, p string) bool {
	if one.Cache {
		return false
	}
	return HoldsCredentials(m.home, p)
}

// HoldsCredentials reports whether a clean absolute path is one of the usual places of credentials, or in one. home is
// the home directory of the user whose path it is.
func HoldsCredentials(home, p string) bool {
	p = strings.ToLower(p)
	for _, name := range split(p) {
		for _, secret := range secretNames {
			if name == secret {
				return true
			}
		}
		if strings.HasPrefix(name, ".env.") && name != ".env.example" {
			return true
		}
	}
	rel, inside := Below(p, strings.ToLower(home))
	if !inside {
		return false
	}
	for _, secret := range secretHome {
		if _, in := Below(rel, secret); in {
			return true
		}
	}
	for _, prefix := range secretPrefixes {
		if strings.HasPrefix(rel, prefix) {
			return true
		}
	}
	return false
}
