package command

import (
	"time"

	"herald/gateway/accounts"
	"herald/locales"
	"herald/platforms/format"
)

// Summary describes the daemon to /status. It implements Status.
type Summary struct {
	Release  string
	Started  time.Time
	Accounts func() []accounts.State
	// Sandbox says where commands run, and why.
	Sandbox func() (backend, because string)
	// Waiting is how many messages wait to be delivered.
	Waiting func() int
	Redact  func(string) string
	Now     func() time.Time
}

// Version implements Status.
func (s Summary) Version() string { return s.Release }

// Lines implements Status.
func (s Summary) Lines(p *locales.Printer) []string {
	var lines []string
	for _, st := range s.Accounts() {
		name, state := format.EscapeMarkdown(st.Account.String()), st.Health.State
		if st.Health.Detail == "" {
			lines = append(lines, p.T("command.status.account", locales.Str("platform", name), locales.Str("state", state)))
			continue
		}
		lines = append(lines, p.T("command.status.account_detail", locales.Str("platform", name), locales.Str("state", state),
			locales.Str("detail", format.EscapeMarkdown(s.Redact(st.Health.Detail)))))
	}
	backend, because := s.Sandbox()
	lines = append(lines, p.T("command.status.sandbox", locales.Str("backend", backend), locales.Str("reason", format.EscapeMarkdown(s.Redact(because)))))
	if n := s.Waiting(); n > 0 {
		lines = append(lines, p.N("command.status.outbox", n))
	}
	return append(lines, p.T("command.status.uptime", locales.Dur("time", s.Now().Sub(s.Started)), locales.Str("version", s.Release)))
}
