package fastapi

import (
	"github.com/valyala/fasthttp"

	"svc/internal/settings"
	"svc/internal/task"
)

func (s *Server) settingFeatures() settings.Features {
	return settings.Features{
		ForeignKeys:        s.features.on("foreignKeys"),
		Chat:               s.features.on("chatCompletions"),
		CompositeEmbedders: s.features.on("compositeEmbedders"),
		Multimodal:         s.features.on("multimodal"),
	}
}

// enqueueSettings enqueues a change of settings. reset says that it contains nothing else: then it creates no index.
func (s *Server) enqueueSettings(ctx *fasthttp.RequestCtx, u *settings.Update, reset bool) error {
	if err := s.checkScoreFunctions(u.ScoreFunctions(), "invalid_settings_score_functions"); err != nil {
		return err
	}
	uid, err := indexUID(ctx)
	if err != nil {
		return err
	}
	return s.enqueue(ctx, task.New{IndexUID: uid, Content: task.UpdateSettings{Update: u, Reset: reset, MayCreate: !reset && mayCreate(ctx, uid)}}, fasthttp.StatusAccepted)
}

func (s *Server) getSettings(ctx *fasthttp.RequestCtx) error {
	v, err := s.outline(ctx)
	if err != nil {
		return err
	}
	if err := chargeAnswer(ctx, v.Settings); err != nil {
		return err
	}
	return answerCharged(ctx, v.Settings.JSON(s.settingFeatures()))
}

func (s *Server) updateSettings(ctx *fasthttp.RequestCtx) error {
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	u, err := settings.ParseUpdate(body, s.settingFeatures())
	if err != nil {
		return err
	}
	return s.enqueueSettings(ctx, u, false)
}

func (s *Server) resetSettings(ctx *fasthttp.RequestCtx) error {
	return s.enqueueSettings(ctx, settings.ResetAll(), true)
}

// gate refuses a sub-route whose feature is off.
func (s *Server) gate(name string) error {
	if name == "chat" {
		return s.features.need("chatCompletions", "the setting `chat`")
	}
	return nil
}

func getSetting(name string) handler {
	return func(s *Server, ctx *fasthttp.RequestCtx) error {
		v, err := s.outline(ctx)
		if err != nil {
			return err
		}
		if err := s.gate(name); err != nil {
			return err
		}
		if err := chargeAnswer(ctx, v.Settings); err != nil {
			return err
		}
		b, err := v.Settings.One(name)
		if err != nil {
			return err
		}
		return answerCharged(ctx, b)
	}
}

func updateSetting(name string) handler {
	return func(s *Server, ctx *fasthttp.RequestCtx) error {
		body, err := s.readJSON(ctx, nil)
		if err != nil {
			return err
		}
		u, err := settings.ParseOne(name, body, s.settingFeatures())
		if err != nil {
			return err
		}
		return s.enqueueSettings(ctx, u, false)
	}
}

// patchSetting is updateSetting for a body that names the setting.
func patchSetting(name string) handler {
	return func(s *Server, ctx *fasthttp.RequestCtx) error {
		body, err := s.readJSON(ctx, nil)
		if err != nil {
			return err
		}
		u, err := settings.ParseNamed(name, body, s.settingFeatures())
		if err != nil {
			return err
		}
		return s.enqueueSettings(ctx, u, false)
	}
}

func resetSetting(name string) handler {
	return func(s *Server, ctx *fasthttp.RequestCtx) error {
		if err := s.gate(name); err != nil {
			return err
		}
		return s.enqueueSettings(ctx, settings.ResetOne(name), true)
	}
}
