package gateway

import (
	"herald/gateway/config"
	"herald/platforms"
	"herald/platforms/signal"
)

// signalAccounts makes the one account of a phone number.
func signalAccounts(g *Gateway, cfg *config.Config) ([]*account, error) {
	adapter, err := g.newSignal(cfg)
	if err != nil {
		return nil, err
	}
	return []*account{{adapter: adapter, lockName: "signal-phone", identity: string(adapter.Account().ID)}}, nil
}

func (g *Gateway) newSignal(cfg *config.Config) (*signal.Adapter, error) {
	s := cfg.Platforms.Signal
	number := platforms.Account{Platform: signal.Platform, ID: platforms.AccountID(signal.Number(s.Account))}
	return signal.New(signal.Options{
		URL: s.HTTPURL, Account: s.Account, IgnoreProxyEnv: !cfg.Gateway.TrustEnv, AllowedChats: s.AllowedChats,
		RequireMention: s.RequireMention, FreeChats: s.FreeResponseChats, MentionPatterns: s.MentionPatterns,
		IgnoreAttachments: s.IgnoreAttachments, Reactions: g.reacts(signal.Platform), ReadReceipts: s.ReadReceipts,
		Groups: func() []string { return g.cfg().Platforms.Signal.Groups() },
		Memory: g.memoryOf(number), Log: g.log, Metrics: g.metrics.Adapter(signal.Platform),
	})
}
