package config

import (
	"net"
	"net/netip"
	"strings"
)

// validate checks what no single value can show.
func (c *Config) validate(r *Report) {
	c.validateHTTP(r)
	c.validatePlatforms(r)
	c.validateTerminal(r)
	if w, t, o := c.Agent.TimeoutWarning, c.Agent.Timeout, r.Origin("agent.gateway_timeout_warning"); o != (Origin{}) && t > 0 && w >= t {
		r.Warnf("agent.gateway_timeout_warning", o, "%v is not shorter than agent.gateway_timeout (%v), so the warning never comes", w, t)
	}
	if c.HumanDelay.Min > c.HumanDelay.Max {
		r.Errorf("human_delay.min_ms", r.Origin("human_delay.min_ms"),
			"%d is more than human_delay.max_ms (%d)", c.HumanDelay.Min, c.HumanDelay.Max)
	}
	g := c.Tools.Guardrails
	for _, p := range []struct {
		name       string
		warn, stop int
	}{{"exact_failure", g.WarnAfter.ExactFailure, g.StopAfter.ExactFailure}, {"same_tool_failure", g.WarnAfter.SameTool, g.StopAfter.SameTool},
		{"idempotent_no_progress", g.WarnAfter.NoProgress, g.StopAfter.NoProgress}} {
		if key := "tools.tool_loop_guardrails.hard_stop_after." + p.name; g.HardStop && p.stop <= p.warn {
			r.Errorf(key, r.Origin(key), "%d is not more than warn_after.%s (%d)", p.stop, p.name, p.warn)
		}
	}
	keys := map[string]Secret{"anthropic": c.Providers.Anthropic.APIKey, "openrouter": c.Providers.OpenRouter.APIKey}
	key, keyed := keys[c.Model.Provider]
	switch {
	case keyed && !key.IsSet():
		r.Errorf("model.provider", r.Origin("model.provider"),
			"%q needs a key; set %s_API_KEY in the environment or in .env", c.Model.Provider, strings.ToUpper(c.Model.Provider))
	case c.Model.Provider == "openai" && !c.Providers.OpenAI.APIKey.IsSet() && c.Providers.OpenAI.BaseURL == "" && c.Model.BaseURL == "":
		r.Errorf("model.provider", r.Origin("model.provider"), `"openai" needs a key or an address; set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own`)
	}
}

// validateHTTP keeps an open door from being served beyond this machine (P13).
func (c *Config) validateHTTP(r *Report) {
	if Loopback(c.HTTP.Listen) || !c.Platforms.DoorOpen() || c.HTTP.Password.IsSet() || c.HTTP.Token.IsSet() {
		return
	}
	r.Errorf("http.listen", r.Origin("http.listen"),
		"%q can be reached from other machines, and there is no password: "+
			"set HERALD_HTTP_PASSWORD or HERALD_HTTP_TOKEN in the environment or in .env, or listen on 127.0.0.1", c.HTTP.Listen)
}

// Loopback reports whether a listen address can be reached from this machine only.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
