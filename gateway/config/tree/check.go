package tree

import (
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"herald/platforms/fetch"
)

var envVarName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)

// check applies a named check to a non-empty text and returns the form to keep.
func check(name, s string) (string, error) {
	switch name {
	case "url":
		return checkURL(s, "http://host or https://host, without a user name", false, "http", "https")
	case "proxy":
		return checkURL(s, "http://host:port or socks5://host:port", true, "http", "https", "socks5", "socks5h")
	case "ollama":
		s, err := checkURL(s, "http://host:port or host:port", false, "http", "https")
		if err != nil {
			return "", err
		}
		u, _ := url.Parse(s)
		host, port := u.Hostname(), u.Port()
		if host == "0.0.0.0" || host == "::" {
			host = "127.0.0.1" // what a server listens on is no place to call
		}
		if port == "" && u.Scheme == "http" {
			port = "11434"
		}
		if port != "" {
			u.Host = net.JoinHostPort(host, port)
		}
		return u.String(), nil
	case "hostport":
		host, port, err := net.SplitHostPort(s)
		n, nerr := strconv.Atoi(port)
		if err != nil || nerr != nil || n < 0 || n > 65535 || strings.ContainsAny(host, " /\x00") {
			return "", badValue{"host:port such as 127.0.0.1:7878"}
		}
	case "server":
		if fetch.CheckAllow(s) != nil {
			return "", badValue{"a host, host:port, or URL such as http://files.internal:9000"}
		}
	case "abspath":
		if strings.HasPrefix(s, "~/") {
			return s, nil // the home directory is filled in by Load
		}
		if !filepath.IsAbs(s) || strings.ContainsRune(s, 0) {
			return "", badValue{"an absolute path, or one that begins with ~/"}
		}
		return filepath.Clean(s), nil
	case "zone":
		if _, err := time.LoadLocation(s); err != nil || strings.EqualFold(s, "local") {
			return "", badValue{"a name of the time zone database such as Europe/Berlin or UTC"}
		}
	case "regexp":
		if _, err := regexp.Compile("(?i)" + s); err != nil || strings.ContainsRune(s, 0) {
			return "", badValue{"regular expressions in Go's syntax (RE2)"}
		}
	case "ip":
		if _, err := netip.ParseAddr(s); err != nil {
			return "", badValue{"IP addresses"}
		}
	case "envname":
		if !envVarName.MatchString(s) {
			return "", badValue{"names of variables; one may end in *"}
		}
	case "text":
		if strings.ContainsAny(s, "\r\n\x00") || len(s) > 500 {
			return "", badValue{"one line of at most 500 bytes"}
		}
		return strings.TrimSpace(s), nil
	case "cursor":
		if strings.ContainsAny(s, "\r\n\x00") || utf8.RuneCountInString(s) > 8 {
			return "", badValue{"at most 8 characters"}
		}
	case "long":
		if len(s) > 100_000 || strings.ContainsRune(s, 0) {
			return "", badValue{"text of at most 100000 bytes"}
		}
	}
	return s, nil
}

// checkURL takes addresses with one of the schemes; a host without scheme gets the first one.
func checkURL(s, allowed string, user bool, schemes ...string) (string, error) {
	if !strings.Contains(s, "://") && !strings.ContainsAny(s, " \x00") {
		s = schemes[0] + "://" + s
	}
	u, err := url.Parse(s)
	if err != nil || !slices.Contains(schemes, u.Scheme) || u.Hostname() == "" || (u.User != nil && !user) || u.Fragment != "" {
		return "", badValue{allowed}
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n > 65535 {
			return "", badValue{allowed}
		}
	}
	return strings.TrimRight(u.String(), "/"), nil
}
