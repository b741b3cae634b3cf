package web

import "herald/platforms"

// Kind is what Herald knows of the browser chat.
type Kind struct{}

var _ platforms.Door = (*Adapter)(nil)

// Name implements platforms.Kind.
func (Kind) Name() platforms.Name { return Platform }

// About implements platforms.Kind.
func (Kind) About() platforms.About {
	return platforms.About{Title: "Browser chat", Block: "the browser chat", Door: true}
}

// Settings implements platforms.Kind.
func (Kind) Settings() platforms.Settings { return &Settings{} }

// Rules implements platforms.Kind. Every chat is with one person.
func (Kind) Rules() platforms.Rules {
	return platforms.Rules{DirectChat: func(platforms.ChatID) bool { return true }, HomeRank: 6}
}

// New makes the one account of the browser chat.
func (Kind) New(host platforms.Host, own platforms.Settings) ([]platforms.Login, error) {
	s := own.(*Settings)
	adapter, err := New(Options{
		Log: host.Entries, MediaDir: host.Media, Listen: host.HTTP.Address, Hosts: host.HTTP.Hosts,
		Password: host.HTTP.Password, Token: host.HTTP.Token, MaxUpload: host.MaxMedia, MaxText: host.MaxText,
		Name: s.Title, Version: host.Version, Logger: host.Log, Now: host.Now,
	})
	if err != nil {
		return nil, err
	}
	return []platforms.Login{{Adapter: adapter}}, nil
}
