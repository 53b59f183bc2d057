package settings

import (
	"svc/internal/apierr"
	"svc/internal/restform"
	"svc/internal/template"
)

// Rest is the source of an API that the settings describe.
const Rest = "rest"

var restSource = embedderSource{
	name:  Rest,
	needs: []string{"url", "request", "response"},
	takes: []string{"dimensions", "apiKey", "indexingFragments", "searchFragments", "documentTemplate", "documentTemplateMaxBytes", "headers"},
	complete: func(e *Embedder) {
		if e.Headers == nil {
			e.Headers = map[string]string{}
		}
	},
	payload: checkRest,
	valid:   validRest,
}

// validRest checks the forms of requests and answers.
func validRest(e *Embedder, path string) error {
	placeholder := restform.Text
	if e.hasFragments() {
		placeholder = restform.Fragment
	}
	request, err := restform.ParseRequest(e.Request, placeholder)
	if err != nil {
		return apierr.New(embeddingError, "`%s.request` %v.", path, err)
	}
	response, err := restform.ParseResponse(e.Response)
	if err != nil {
		return apierr.New(embeddingError, "`%s.response` %v.", path, err)
	}
	if request.Batch() != response.Batch() {
		return apierr.New(embeddingError, "`%s` must repeat an item with %q in both request and response, or in neither.", path, restform.Repeat)
	}
	return nil
}

// checkRest checks the templates in the payload of a rest embedder.
func checkRest(v value, sent map[string]value) error {
	var fragments, templated bool
	for _, name := range []string{"indexingFragments", "searchFragments"} {
		list, ok := sent[name]
		if !ok || list.null() {
			continue
		}
		fragments = true
		members, err := list.members()
		if err != nil {
			return err
		}
		for _, m := range members {
			if _, err := template.ParseJSON(template.Work{}, m.raw); err != nil {
				m.code = embeddingError
				return m.fail("is not a template: %v.", err)
			}
		}
	}
	if t, ok := sent["documentTemplate"]; ok {
		templated = !t.null()
	}
	if fragments && templated {
		return v.templateAndFragments()
	}
	request, requestOK := sent["request"]
	requestOK = requestOK && !request.null()
	response, responseOK := sent["response"]
	responseOK = responseOK && !response.null()
	var batches [2]bool
	if requestOK {
		placeholder := restform.Text
		if fragments {
			placeholder = restform.Fragment
		}
		r, err := restform.ParseRequest(request.raw, placeholder)
		if err != nil && !fragments {
			// The embedder may have fragments already: that is seen on the merged settings.
			if other, ok := restform.ParseRequest(request.raw, restform.Fragment); ok == nil {
				r, err = other, nil
			}
		}
		if err != nil {
			request.code = embeddingError
			return request.fail("%v.", err)
		}
		batches[0] = r.Batch()
	}
	if responseOK {
		r, err := restform.ParseResponse(response.raw)
		if err != nil {
			response.code = embeddingError
			return response.fail("%v.", err)
		}
		batches[1] = r.Batch()
	}
	if requestOK && responseOK && batches[0] != batches[1] {
		v.code = embeddingError
		return v.fail("must repeat an item with %q in both request and response, or in neither.", restform.Repeat)
	}
	return nil
}

// templateAndFragments returns the error of an embedder, v, that would have both a template and fragments.
func (v value) templateAndFragments() error {
	v.code = embeddingError
	return v.fail("cannot have both a documentTemplate and fragments. To use the template, set indexingFragments and searchFragments to null.")
}
