package access

import (
	"herald/gateway/config"
	"herald/platforms"
)

// PolicyOf reads from the configuration who may talk.
func PolicyOf(cfg *config.Config) Policy {
	p := Policy{AllowedUsers: cfg.AllowedUsers, AllowAllUsers: cfg.AllowAllUsers, UnauthorizedDM: cfg.UnauthorizedDM,
		Platforms: map[platforms.Name]PlatformPolicy{}, Rules: cfg.Platforms.Rules()}
	for _, b := range cfg.Platforms.Blocks() {
		if !b.On() {
			continue
		}
		pp := platformPolicy(b.Shared())
		if own, ok := b.Settings.(platforms.Guests); ok {
			pp.GuestMode = own.Guests()
		}
		p.Platforms[b.Name()] = pp
	}
	return p
}

func platformPolicy(p config.Platform) PlatformPolicy {
	return PlatformPolicy{
		AllowedUsers: p.AllowedUsers, GroupAllowedUsers: p.GroupAllowedUsers, GroupAllowedChats: p.GroupAllowedChats,
		AllowedRoles: p.AllowedRoles,
		AllowFrom:    p.AllowFrom, GroupAllowFrom: p.GroupAllowFrom, AllowedChats: p.AllowedChats, AllowAll: p.AllowAll,
		AllowUsernames: p.AllowUsernames, AllowBots: p.AllowBots, AdminFrom: p.AdminFrom, UserCommands: p.UserCommands,
		GroupAdminFrom: p.GroupAdminFrom, GroupUserCommands: p.GroupUserCommands, UnauthorizedDM: p.UnauthorizedDM,
	}
}

// LoopLimitsOf reads from the configuration how long bots may talk to each other.
func LoopLimitsOf(cfg *config.Config) LoopLimits {
	c := cfg.Gateway.BotLoopGuard
	return LoopLimits{Off: !c.Enabled, MaxEvents: c.MaxEvents, Window: c.Window, Cooldown: c.Cooldown}
}
