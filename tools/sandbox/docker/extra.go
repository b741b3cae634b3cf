package docker

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
)

// extra is a change that one of the operator's own options makes.
type extra func(c *container.Config, h *container.HostConfig)

// flag is an option of docker run that Herald knows.
type flag struct {
	name, short string
	bare        bool // it has no value
	parse       func(value string) (extra, error)
}

// ExtraFlags are the options of docker run that terminal.docker_extra_args may hold, in order.
func ExtraFlags() []string {
	var names []string
	for _, f := range extraFlags() {
		names = append(names, "--"+f.name)
	}
	slices.Sort(names)
	return names
}

// many is an option whose values add up.
func many(name, short string, at func(h *container.HostConfig) *[]string) flag {
	return flag{name: name, short: short, parse: func(value string) (extra, error) {
		return func(_ *container.Config, h *container.HostConfig) { *at(h) = append(*at(h), value) }, nil
	}}
}

// bytesFlag is an option that is a number of bytes.
func bytesFlag(name, short string, at func(h *container.HostConfig) *int64) flag {
	return flag{name: name, short: short, parse: func(value string) (extra, error) {
		n, err := units.RAMInBytes(value)
		if err != nil {
			return nil, errors.New("want a size such as 512m or 2g")
		}
		return func(_ *container.Config, h *container.HostConfig) { *at(h) = n }, nil
	}}
}

func extraFlags() []flag {
	return []flag{
		{name: "network", short: "net", parse: func(v string) (extra, error) {
			return func(_ *container.Config, h *container.HostConfig) { h.NetworkMode = container.NetworkMode(v) }, nil
		}},
		{name: "cpus", parse: parseCPUs},
		bytesFlag("memory", "m", func(h *container.HostConfig) *int64 { return &h.Memory }),
		bytesFlag("memory-swap", "", func(h *container.HostConfig) *int64 { return &h.MemorySwap }),
		bytesFlag("shm-size", "", func(h *container.HostConfig) *int64 { return &h.ShmSize }),
		{name: "pids-limit", parse: parsePids},
		{name: "ulimit", parse: parseUlimit},
		{name: "gpus", parse: parseGPUs},
		{name: "device", parse: parseDevice},
		{name: "tmpfs", parse: func(v string) (extra, error) {
			dir, options, _ := strings.Cut(v, ":")
			return func(_ *container.Config, h *container.HostConfig) { h.Tmpfs[dir] = options }, nil
		}},
		{name: "dns", parse: parseDNS},
		many("dns-search", "", func(h *container.HostConfig) *[]string { return &h.DNSSearch }),
		many("add-host", "", func(h *container.HostConfig) *[]string { return &h.ExtraHosts }),
		many("group-add", "", func(h *container.HostConfig) *[]string { return &h.GroupAdd }),
		many("cap-add", "", func(h *container.HostConfig) *[]string { return &h.CapAdd }),
		many("cap-drop", "", func(h *container.HostConfig) *[]string { return &h.CapDrop }),
		many("security-opt", "", func(h *container.HostConfig) *[]string { return &h.SecurityOpt }),
		many("volume", "v", func(h *container.HostConfig) *[]string { return &h.Binds }),
		{name: "hostname", short: "h", parse: func(v string) (extra, error) {
			return func(c *container.Config, _ *container.HostConfig) { c.Hostname = v }, nil
		}},
		{name: "user", short: "u", parse: func(v string) (extra, error) {
			return func(c *container.Config, _ *container.HostConfig) { c.User = v }, nil
		}},
		{name: "runtime", parse: func(v string) (extra, error) {
			return func(_ *container.Config, h *container.HostConfig) { h.Runtime = v }, nil
		}},
		{name: "userns", parse: func(v string) (extra, error) {
			return func(_ *container.Config, h *container.HostConfig) { h.UsernsMode = container.UsernsMode(v) }, nil
		}},
		{name: "label", short: "l", parse: parseLabel},
		{name: "sysctl", parse: parseSysctl},
		{name: "read-only", bare: true, parse: func(string) (extra, error) {
			return func(_ *container.Config, h *container.HostConfig) { h.ReadonlyRootfs = true }, nil
		}},
	}
}

// parseExtra reads the operator's own options, written as for docker run: "--name=value", "--name value" as one or two
// entries, or the short forms. An option that Herald does not know is an error that names those it does. With the network
// off, an option that asks for one is an error; asking for none again is fine.
func parseExtra(args []string, noNetwork bool) ([]extra, error) {
	known := extraFlags()
	var out []extra
	var errs []error
	for i := 0; i < len(args); i++ {
		text := strings.TrimSpace(args[i])
		if text == "" {
			continue
		}
		name, value, has := cutFlag(text)
		at := slices.IndexFunc(known, func(f flag) bool {
			return name == "--"+f.name || f.short != "" && (name == "-"+f.short || name == "--"+f.short)
		})
		if at < 0 {
			errs = append(errs, fmt.Errorf("terminal.docker_extra_args: %q is not supported; allowed are %s", name, strings.Join(ExtraFlags(), ", ")))
			continue
		}
		f := known[at]
		switch {
		case f.bare && has && value != "true":
			errs = append(errs, fmt.Errorf("terminal.docker_extra_args: %s takes no value", name))
			continue
		case !f.bare && !has:
			if i++; i >= len(args) {
				errs = append(errs, fmt.Errorf("terminal.docker_extra_args: %s needs a value", name))
				continue
			}
			value = strings.TrimSpace(args[i])
		}
		if f.name == "network" && noNetwork && value != "none" {
			errs = append(errs, fmt.Errorf("terminal.docker_extra_args asks for the network %q, and terminal.docker_network is off; remove one of the two", value))
			continue
		}
		change, err := f.parse(value)
		if err != nil {
			errs = append(errs, fmt.Errorf("terminal.docker_extra_args: %s %q: %w", name, value, err))
			continue
		}
		out = append(out, change)
	}
	return out, errors.Join(errs...)
}

// cutFlag divides "--name=value" and "--name value".
func cutFlag(text string) (name, value string, has bool) {
	if at := strings.IndexAny(text, "= "); at > 0 {
		return text[:at], strings.TrimSpace(text[at+1:]), true
	}
	return text, "", false
}

func parseCPUs(v string) (extra, error) {
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n <= 0 || n > 10_000 {
		return nil, errors.New("want a number of cores such as 1.5")
	}
	return func(_ *container.Config, h *container.HostConfig) { h.NanoCPUs = int64(n * 1e9) }, nil
}

func parsePids(v string) (extra, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return nil, errors.New("want a number of processes, -1 for no limit")
	}
	return func(_ *container.Config, h *container.HostConfig) { h.PidsLimit = &n }, nil
}

func parseUlimit(v string) (extra, error) {
	u, err := units.ParseUlimit(v)
	if err != nil {
		return nil, err
	}
	return func(_ *container.Config, h *container.HostConfig) { h.Ulimits = append(h.Ulimits, u) }, nil
}

func parseGPUs(v string) (extra, error) {
	r := container.DeviceRequest{Capabilities: [][]string{{"gpu"}}}
	n, err := strconv.Atoi(v)
	switch ids, named := strings.CutPrefix(v, "device="); {
	case v == "all":
		r.Count = -1
	case named && ids != "":
		r.DeviceIDs = strings.Split(ids, ",")
	case err == nil && n > 0:
		r.Count = n
	default:
		return nil, errors.New("want all, a number, or device= with ids")
	}
	return func(_ *container.Config, h *container.HostConfig) { h.DeviceRequests = append(h.DeviceRequests, r) }, nil
}

func parseDevice(v string) (extra, error) {
	parts := strings.Split(v, ":")
	d := container.DeviceMapping{PathOnHost: parts[0], PathInContainer: parts[0], CgroupPermissions: "rwm"}
	if len(parts) > 3 || !strings.HasPrefix(parts[0], "/") {
		return nil, errors.New("want host[:container[:rwm]]")
	}
	if len(parts) > 1 {
		d.PathInContainer = parts[1]
	}
	if len(parts) > 2 {
		d.CgroupPermissions = parts[2]
	}
	return func(_ *container.Config, h *container.HostConfig) { h.Devices = append(h.Devices, d) }, nil
}

func parseDNS(v string) (extra, error) {
	a, err := netip.ParseAddr(v)
	if err != nil {
		return nil, errors.New("want an IP address")
	}
	return func(_ *container.Config, h *container.HostConfig) { h.DNS = append(h.DNS, a) }, nil
}

func parseLabel(v string) (extra, error) {
	name, value, _ := strings.Cut(v, "=")
	if name == "" || strings.HasPrefix(name, "herald-") {
		return nil, errors.New("want name=value; names that begin with herald- are Herald's own")
	}
	return func(c *container.Config, _ *container.HostConfig) { c.Labels[name] = value }, nil
}

func parseSysctl(v string) (extra, error) {
	name, value, ok := strings.Cut(v, "=")
	if !ok || name == "" {
		return nil, errors.New("want name=value")
	}
	return func(_ *container.Config, h *container.HostConfig) { h.Sysctls[name] = value }, nil
}
