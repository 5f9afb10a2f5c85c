//! Rotations, and distances on curves.

use minitensor_plugin_sdk::prelude::*;

/// The product of two quaternions `w + x·i + y·j + z·k` (Hamilton, 1843).
#[custom_op(shape = (p: [.., 4], q: [.., 4]) -> [.., 4])]
pub fn quaternion_product<T: Float>(p: &[T], q: &[T], out: &mut [T]) {
    out[0] = p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3];
    out[1] = p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2];
    out[2] = p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1];
    out[3] = p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0];
}

/// The cross product.
fn cross<T: Float>(a: &[T], b: &[T]) -> [T; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// A vector, turned by an angle about an axis of length 1 (Rodrigues, 1840).
#[custom_op(shape = (v: [.., 3], axis: [.., 3], angle: [..]) -> [.., 3])]
pub fn rotate<T: Float>(v: &[T], axis: &[T], angle: &T, out: &mut [T]) {
    let along = v[0] * axis[0] + v[1] * axis[1] + v[2] * axis[2];
    let across = cross(axis, v);
    let (sin, cos) = (angle.sin(), angle.cos());
    for i in 0..3 {
        out[i] = v[i] * cos + across[i] * sin + axis[i] * along * (1.0 - cos);
    }
}

/// The angle between two points of a sphere, from latitudes and longitudes in radians (Sinnott, 1984).
#[custom_op]
pub fn haversine<T: Float>(lat1: T, lon1: T, lat2: T, lon2: T) -> T {
    let h = (0.5 * (lat2 - lat1)).sin().square() + lat1.cos() * lat2.cos() * (0.5 * (lon2 - lon1)).sin().square();
    2.0 * h.minimum(1.0).sqrt().asin()
}

/// The distance in the Poincaré ball, for embeddings of trees (Nickel and Kiela, 2017).
#[custom_op(shape = (x: [.., n], y: [.., n]) -> [..] where eps > 0.0)]
pub fn poincare_distance<R: Row>(x: R, y: R, #[default = 1e-5] eps: f64) -> R {
    let room = |x: R| (1 - x.dot(x)).maximum(eps);
    let t = (x - y).square().sum() / (room(x) * room(y));
    2 * t.sqrt().asinh()
}

/// The signed distance of the point (`x`, `y`) from a box around 0, negative inside (Quilez, 2008).
#[custom_op]
pub fn box_distance<T: Float>(x: T, y: T, #[default = 1.0] width: f64, #[default = 1.0] height: f64) -> T {
    let (dx, dy) = (x.abs() - width, y.abs() - height);
    dx.maximum(0.0).hypot(dy.maximum(0.0)) + dx.maximum(dy).minimum(0.0)
}
