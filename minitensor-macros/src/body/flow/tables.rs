//! The methods of lists, iterators and integers, by their results.

/// Whether a method is in a table.
pub fn is_in(table: &str, name: &str) -> bool {
    table.split_whitespace().any(|own| own == name)
}

/// Those that keep the items of a list, or return one that has them.
pub const SAME: &str = "iter iter_mut into_iter rev skip take step_by copied cloned by_ref to_vec to_owned view view_mut row \
    row_mut column column_mut slice slice_mut filter skip_while take_while chain cycle peekable clone \
    collect as_slice as_mut_slice as_ref as_mut unwrap expect unwrap_or unwrap_or_default unwrap_or_else \
    drain split_off inspect ok ok_or into_owned reborrow t reversed_axes or fuse diag diag_mut";
/// Those that return one item.
pub const ONE: &str = "first last get get_mut first_mut last_mut next next_back nth reduce max_by min_by find pop pop_front \
    pop_back front back remove swap_remove peek max_by_key min_by_key";
/// Those whose items are lists.
pub const PARTS: &str = "windows chunks chunks_mut chunks_exact chunks_exact_mut rows rows_mut columns columns_mut outer_iter \
    outer_iter_mut array_windows split";
/// Those that return a view or an array of ndarray, or a slice.
pub const VIEWS: &str =
    "row row_mut column column_mut slice slice_mut view view_mut t to_owned reversed_axes diag diag_mut";
/// Those that write their last argument to a list.
pub const WRITES: &str = "push push_back push_front insert resize fill";
/// Those whose closure takes items.
pub const TAKES_ITEMS: &str = "sort_by max_by min_by for_each filter position any all retain skip_while take_while find sort_by_key \
    max_by_key min_by_key inspect partition_point mapv_inplace map_inplace";
/// Those of slices and views that return an integer.
pub const SIZES: &str = "len nrows ncols len_of count";
/// Those of lists that return sizes, and that elements lack.
pub const LIST_SIZES: &str = "len is_empty nrows ncols dim shape ndim";
/// Those of integers that return an integer.
pub const OF_INTEGERS: &str = "min max clamp pow abs_diff div_ceil isqrt saturating_add saturating_sub rem_euclid";
/// Functions of `minitensor::kernels::rows` that return an element.
pub const REDUCTIONS: &str = "sum sum_map prod dot";
/// Those of floats without arguments that return a float, and that nothing else has.
pub const OF_FLOATS: &str = "sqrt exp ln sin cos tan tanh recip exp_m1 ln_1p floor ceil round log atan asin acos";
