package fastapi

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/settings"
)

// checkScoreFunctions refuses filters that are invalid, or need a disabled feature. It needs no index. nil has none.
func (s *Server) checkScoreFunctions(f *settings.ScoreFunctions, code apierr.Code) error {
	if f == nil {
		return nil
	}
	for i := range f.Functions {
		if f.Functions[i].Kind != settings.FilterScore {
			continue
		}
		e, err := filter.FromJSON(f.Functions[i].Filter, code)
		switch {
		case err != nil:
			return err
		case e == nil:
			return apierr.New(code, "The filter of the score function %q is empty: give a condition.", f.Functions[i].Name)
		case e.HasForeign():
			return apierr.New(code, "The filter of the score function %q uses `_foreign`, which score functions do not support.", f.Functions[i].Name)
		}
		if err := s.checkFilter(e); err != nil {
			return err
		}
	}
	return nil
}

// sentTime returns the time that the searches of a request use: that of the request, or the one sent by another instance of the
// network.
func sentTime(ctx *fasthttp.RequestCtx, proxied bool) time.Time {
	if proxied {
		if second, err := strconv.ParseInt(string(headerSearchTime.in(&ctx.Request.Header)), 10, 64); err == nil && second >= 0 {
			return time.Unix(second, 0)
		}
	}
	return arrival(ctx)
}
