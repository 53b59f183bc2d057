// Package geo is geometry in degrees on the sphere and in the plane of longitude and latitude: distances, regions,
// and the parts that shapes are made of with their code in bytes. It knows no file and no row.
package geo
