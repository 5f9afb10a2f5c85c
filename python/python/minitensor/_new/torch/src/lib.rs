
mod patterns;
