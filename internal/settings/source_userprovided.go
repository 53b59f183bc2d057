package settings

// UserProvided is the source of vectors that come with documents and queries.
const UserProvided = "userProvided"

var userProvidedSource = embedderSource{
	name:     UserProvided,
	needs:    []string{"dimensions"},
	provided: true,
	work: func(was, is *Embedder) (VectorWork, bool) {
		return KeepVectors, was.Dimensions != is.Dimensions
	},
}
